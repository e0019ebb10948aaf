"""Configurations as users have them: files, data, objects of `transformers`; and how to read them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

from archspec.record import Record
from archspec.source import fail

if TYPE_CHECKING:
    ConfigurationData: TypeAlias = "Mapping[str, Any] | ConfigurationObject"
    """The contents of a configuration."""


LARGEST_CONFIGURATION = 4 * 2**20
"""The limit on the size of a configuration in bytes; those with tens of thousands of labels are large."""


@runtime_checkable
class ConfigurationObject(Protocol):
    """What a configuration object of `transformers` has; archspec does not import `transformers`."""

    model_type: Any

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as data."""
        ...


class Configuration(Record):
    """A configuration, and what it leaves open.

    `source` is a path, a name on the hub, a dictionary or an object of `transformers`. `type` is the `model_type` of a
    configuration without one. `ignore` are patterns of unknown fields to ignore, because they have no effect.
    """

    source: str | os.PathLike[str] | ConfigurationData
    type: str | None = None
    ignore: tuple[str, ...] = ()


def is_data(value: object) -> TypeGuard[ConfigurationData]:
    """Whether a value is the contents of a configuration."""
    return isinstance(value, Mapping | ConfigurationObject) and not isinstance(value, type)


def text_of(data: ConfigurationData) -> str:
    """Return a configuration as JSON. Raises ArchError for values that JSON does not have."""
    from json import dumps

    fields: Any = data if isinstance(data, Mapping) else data.to_dict()
    try:
        if not isinstance(fields, Mapping):
            raise TypeError(f"`to_dict()` returned {fields.__class__.__name__}")
        return dumps(dict(cast("Mapping[str, object]", fields)), indent=2, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as problem:
        help = "use strings, numbers, booleans, None, lists and dictionaries"
        raise fail("wrong-kind", f"configuration cannot be written as JSON: {problem}", help=help) from None
