"""Python names for the names of a spec, which may be taken or reserved."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

from archspec.codegen.stand_in.modules import RESERVED_MODULE_NAMES
from archspec.ir.ops import OPS

RESERVED_FILE_NAMES = frozenset(
    {
        "torch",
        "nn",
        "F",
        "math",
        "Tensor",
        "Callable",
        "NamedTuple",
        "self",
        "build",
        "has_part",
        "own",
        "part_at",
        "partial",
        "tie",
        "dtype",
        "device",
        "training",
    }
    | {
        n
        for op in OPS.values()
        if op.torch is not None
        for n in re.findall(r"^(?:class|def) (\w+)", op.torch.helper, re.MULTILINE)
    }
    | {"abs", "enumerate", "float", "int", "len", "list", "max", "min", "range", "str", "super", "tuple", "bool"}
)
"""What a generated file imports or defines itself, and what it uses of Python."""

RESERVED_TUPLE_NAMES = frozenset({"count", "index"})
"""What a tuple has besides its fields."""


def is_hidden(word: str) -> bool:
    """Whether `getattr` may find something else of a module under a part of an address."""
    return word.startswith("_") or word in RESERVED_MODULE_NAMES


def is_plain(word: str) -> bool:
    """Whether a part of an address can be an attribute of a module."""
    return word.isidentifier() and not keyword.iskeyword(word) and not is_hidden(word)


def python_name(word: str, taken: Iterable[str]) -> str:
    """A name for Python: the word itself, or with underscores behind it where it is taken or ambiguous.

    Inside a class Python changes names that begin with two underscores, so that they begin with one here.
    """
    word = "_" + word.lstrip("_") if word.startswith("__") else word
    while keyword.iskeyword(word) or word in taken or word in ("l", "O", "I"):
        word += "_"
    return word
