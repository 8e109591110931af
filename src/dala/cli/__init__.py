"""The command line: `dala process`, `dala filters` and the others."""

from dala.cli.app import main

__all__ = ["main"]
