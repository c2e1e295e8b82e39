"""One module per family of RPCs; each registers its handlers in ``registry.HANDLERS``."""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files


def load_all() -> None:
    """Import every module of this package, so that every handler is registered."""
    for resource in sorted(files(__package__).iterdir(), key=lambda item: item.name):
        name = resource.name.removesuffix(".py")
        if resource.name.endswith(".py") and not name.startswith("_"):
            import_module(f"{__package__}.{name}")
