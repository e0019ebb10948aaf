"""Commands, one module for each: `run` takes the parsed options, and returns the exit status."""
