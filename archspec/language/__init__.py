"""Text of the language to syntax trees and back: grammar, parser, error messages, canonical format, highlighting.

The meaning of names, values and shapes belongs to `compiler`. Begin with `syntax/parse.py`: `lines.py` scans the text,
`machine.py` runs the parser, `build.py` constructs the nodes of `tree.py`, and `messages.py` explains syntax errors.
"""
