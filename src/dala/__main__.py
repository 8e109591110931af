"""`python -m dala`."""

from dala.cli import main

raise SystemExit(main())
