"""Python functions that are called as the commands are, one a file: each answers with plain data."""
