"""Relatives of a model: definitions with the same body."""

from __future__ import annotations

from typing import NamedTuple

from archspec.table import Table


class Relative(NamedTuple):
    """A model that shares its body with another model but has different task heads.

    `definition` is the name of its definition, and `models` are the models in the file that use it. The address of the
    shared body is `body` in its own table and `home` in the other model ("" if that model is the body). `guessed` means
    that the other model does not specify one of its sizes, such as a number of labels.
    """

    definition: str
    models: tuple[str, ...]
    table: Table
    body: str
    home: str
    guessed: bool = False
