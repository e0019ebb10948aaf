"""Element types, and the choices of how a model is run: constants that commands name."""

from __future__ import annotations

from collections.abc import Iterable

from archspec.core.diagnostics import make_error, suggest

BITS = {"float64": 64, "float32": 32, "float16": 16, "bfloat16": 16, "fp8": 8, "int8": 8, "int4": 4}
"""Bits per element, by element type."""

FLOATS = ("float64", "float32", "float16", "bfloat16")
"""The element types in which models are trained."""

ATTENTION = ("flash", "math")
"""Implementations of attention: PyTorch's fused kernel, which does not save scores, and separate operations."""

CHECKPOINTS = ("none", "blocks", "blocks-reentrant")
"""Kinds of activation checkpointing: none, and the two of `torch.utils.checkpoint` for each block."""


def check_choice(value: object, choices: Iterable[str | None], what: str) -> None:
    """Raise ArchError for a value that is none of the choices, which messages call `what`."""
    if value not in [*choices]:
        names = [choice for choice in choices if choice is not None]
        help = suggest(str(value), names) or f"use {', '.join(names)}"
        raise make_error("usage", f"unknown {what} `{value!s:.40}`", help=help)


def check_dtype(name: object) -> None:
    """Raise ArchError for an unknown element type."""
    check_choice(name, BITS, "dtype")


def check_part(name: str, part: object) -> None:
    """Raise ArchError for a part that is not above 0 and at most 1."""
    if isinstance(part, bool) or not isinstance(part, int | float) or not 0 < part <= 1:
        raise make_error("usage", f"expected a {name} above 0 and at most 1, found {part!r:.40}")


def byte_count(count: int, dtype: str) -> int:
    """Return the bytes of `count` elements of a type, rounded up to full bytes."""
    return -(-count * BITS[dtype] // 8)
