"""Text of the language to syntax trees and back: grammar, parser, messages, canonical format, colors.

What a name refers to, and values and shapes, belong to `compiler`. Begin with `syntax/parse.py`: `lines.py` scans,
`machine.py` runs the parser, `build.py` makes the nodes of `tree.py`, and `messages.py` explains what was expected.
"""
