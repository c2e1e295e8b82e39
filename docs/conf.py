"""How the documentation is built: `sphinx-build -W docs docs/_build/html`, offline."""

from __future__ import annotations

import fakecri

project = "fakecri"
author = "the fakecri authors"
copyright = "the fakecri authors"  # noqa: A001  (Sphinx's name)
version = release = fakecri.__version__

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
nitpicky = True

html_theme = "furo"
html_title = f"fakecri {release}"
html_copy_source = False
