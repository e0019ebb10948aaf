"""What commands that take more than one SPEC have in common."""

from __future__ import annotations

from typing import Any

from archspec.source import fail


def overrides_for(count: int, settings: list[str]) -> list[dict[str, Any]]:
    """What the `--set` options give each of so many models: NAME=VALUE all of them, K:NAME=VALUE the K-th alone.

    Raises ArchError.
    """
    from archspec.cli.commands import overrides_of

    found: list[list[str]] = [[] for _ in range(count)]
    for setting in settings:
        number, colon, rest = setting.partition(":")
        if not (colon and number.isascii() and number.isdigit()):
            for each in found:
                each.append(setting)
        elif number.lstrip("0")[:4] and 1 <= int(number.lstrip("0")[:4]) <= count:
            found[int(number) - 1].append(rest)
        else:
            raise fail("usage", f"`--set {setting}` is for model {number}", help=f"the models are 1 to {count}")
    return [overrides_of(each) for each in found]
