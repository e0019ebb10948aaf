"""Conversion of Hugging Face configurations (`config.json`) to specs."""
