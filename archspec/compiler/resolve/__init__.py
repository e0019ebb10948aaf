"""Names and what they refer to: `files.py` loads files and imports; `nodes.py` lists the resolved nodes."""
