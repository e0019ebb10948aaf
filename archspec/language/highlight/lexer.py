"""The lexer for Pygments (Sphinx, MkDocs); a separate module, because it imports Pygments."""

from __future__ import annotations

import re
from typing import ClassVar

from pygments.lexer import RegexLexer
from pygments.token import Text, string_to_tokentype

from archspec.language.highlight.tokens import styles


class ArchLexer(RegexLexer):
    """Lexer for `.arch` files."""

    name = "archspec"
    aliases: ClassVar = ["arch"]
    filenames: ClassVar = ["*.arch"]
    flags = re.MULTILINE
    tokens: ClassVar = {
        "root": [*[(s.pattern, string_to_tokentype(s.token)) for s in styles()], (r"\s+", Text), (r".", Text)]
    }
