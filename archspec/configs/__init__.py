"""Configurations (`config.json`): from one to the text of a spec."""
