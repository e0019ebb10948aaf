"""Facts about the classes of `transformers`: which there are, and which names they may read from a configuration.

`generate.py` writes them to a file, which is read only for fields and types that the families do not have.
"""

from __future__ import annotations

import json
import os
from functools import cache
from typing import TypedDict

CLASSES_FILE = "_classes.json"


class TypeFacts(TypedDict):
    """The classes of a model type, and the names that only they may read."""

    classes: list[str]
    fields: list[str]


class Facts(TypedDict):
    """The version of `transformers`, its model types, names that any class may read, and facts about types."""

    transformers: str
    model_types: list[str]
    shared: list[str]
    types: dict[str, TypeFacts]


@cache
def read_facts(specs: str) -> Facts:
    """Read the facts about classes of `transformers`."""
    with open(os.path.join(specs, "configs", CLASSES_FILE), encoding="utf-8") as file:
        return json.load(file)
