"""`python -m archspec`."""

from archspec_dsl import run

if __name__ == "__main__":
    run()
