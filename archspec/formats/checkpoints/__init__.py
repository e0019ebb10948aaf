"""Readers of checkpoint files. They read headers only, validate everything and never run code from a file."""
