"""`python -m lpgnn_cli` is `lpgnn`."""

import sys

from lpgnn_cli.cli import program

if __name__ == "__main__":
    sys.exit(program())
