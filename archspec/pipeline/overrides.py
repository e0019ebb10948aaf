"""Overrides of hyperparameters in `--set` options."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from archspec.core.diagnostics import make_error

if TYPE_CHECKING:
    from archspec.ir.table import PlainValue

_WORD = re.compile(r"[A-Za-z_]\w*")


def parse_overrides(settings: Iterable[str]) -> dict[str, PlainValue]:
    """Parse `--set NAME=VALUE` options. Raises ArchError."""
    return dict(map(parse_override, settings))


def overrides_for(count: int, settings: Iterable[str]) -> list[dict[str, PlainValue]]:
    """Parse the overrides of each of `count` models: NAME=VALUE is for all of them, K:NAME=VALUE only for the K-th.

    Raises ArchError.
    """
    settings_by_model: list[list[str]] = [[] for _ in range(count)]
    for setting in settings:
        number, colon, remainder = setting.partition(":")
        if not (colon and number.isascii() and number.isdigit()):
            for model_settings in settings_by_model:
                model_settings.append(setting)
            continue
        index = int(number.lstrip("0")[:9] or 0)
        if 1 <= index <= count:
            settings_by_model[index - 1].append(remainder)
        else:
            raise make_error(
                "usage", f"`--set {setting}` is for model {number}", help=f"use a model number from 1 to {count}"
            )
    return list(map(parse_overrides, settings_by_model))


def parse_override(text: str) -> tuple[str, PlainValue]:
    """Parse `name=value`.

    A value has the syntax of the language: a number, `true`, `false`, `none`, a string, or a list of these; a name
    stands for a string, or for the definition or function of that name, and `Name(n = 4)` for one with hyperparameters
    bound. Raises ArchError (`bad-override`) otherwise.
    """
    name, separator, written = text.partition("=")
    name = name.strip()
    if not separator or not _WORD.fullmatch(name):
        raise make_error(
            "bad-override", f"invalid --set `{text}`: expected name=value", help="write it as `--set layers=6`"
        )
    written = written.strip()
    if _WORD.fullmatch(written) and written not in ("true", "false", "none", "inf"):
        return name, written
    from archspec.compiler.literals import definition_names, parse_literal

    value = parse_literal(written)
    if value is ... and any(definition_names(written)):
        return name, written
    if value is ...:
        raise make_error(
            "bad-override",
            f"invalid value for `{name}`: `{written}`",
            help="use a number, `true`, `false`, `none`, a name, a string or a list",
        )
    return name, value
