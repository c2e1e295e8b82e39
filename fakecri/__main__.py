"""``python -m fakecri``."""

import sys

from fakecri.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
