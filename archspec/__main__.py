"""`python -m archspec`: the command line."""

from archspec.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
