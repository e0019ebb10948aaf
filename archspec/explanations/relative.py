"""Relatives of a model: what else is made of its body."""

from __future__ import annotations

from typing import NamedTuple

from archspec.table import Table


class Relative(NamedTuple):
    """A model that has its body in common with another, and heads of its own.

    `definition` is its definition's name, `models` those of models in the file that are it. The body's address is
    `body` in its own table, and `home` in the other model's ("" where that model is the body). It is `guessed` if it
    has a size that the other model says nothing of: a number of labels.
    """

    definition: str
    models: tuple[str, ...]
    table: Table
    body: str
    home: str
    guessed: bool = False
