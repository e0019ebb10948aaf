"""Values of an exported program with their normal forms (`values.py`), and the builder of new ones (`builder.py`)."""
