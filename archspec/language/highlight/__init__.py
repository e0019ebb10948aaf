"""Syntax highlighting of `.arch` files for editors and documentation, from one list of tokens."""
