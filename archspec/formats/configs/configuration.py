"""Configurations as users have them: files, data, objects of `transformers`; and how to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from archspec.core.diagnostics import make_error
from archspec.core.record import Record

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Protocol, TypeAlias, TypeGuard

    class ConfigurationObject(Protocol):
        """What a configuration object of `transformers` has; archspec does not import `transformers`."""

        @property
        def model_type(self) -> object:
            """The type, a string."""
            ...

        def to_dict(self) -> Mapping[str, object]:
            """Return the fields as data."""
            ...

    ConfigurationData: TypeAlias = Mapping[str, object] | ConfigurationObject
    """The contents of a configuration."""


MAX_CONFIGURATION_BYTES = 4 * 2**20
"""The limit on the size of a configuration in bytes; those with tens of thousands of labels are large."""


class Configuration(Record):
    """A configuration, and what it leaves open.

    `source` is a path, a name on the hub, a dictionary or an object of `transformers`. `type` is the `model_type` of a
    configuration without one. `ignore` are patterns of unknown fields to ignore, because they have no effect.
    """

    source: str | os.PathLike[str] | ConfigurationData
    type: str | None = None
    ignore: tuple[str, ...] = ()


def is_configuration_data(value: object) -> TypeGuard[ConfigurationData]:
    """Whether a value is the contents of a configuration: a mapping, or an object of `transformers`."""
    if isinstance(value, dict):
        return True
    is_object = hasattr(value, "to_dict") and hasattr(value, "model_type") and not isinstance(value, type)
    return is_object or _is_mapping(value)


def configuration_json(data: ConfigurationData) -> str:
    """Return a configuration as JSON. Raises ArchError for values that JSON does not have."""
    from json import dumps

    fields: object = data if _is_mapping(data) else cast("ConfigurationObject", data).to_dict()
    try:
        if not _is_mapping(fields):
            raise TypeError(f"`to_dict()` returned {fields.__class__.__name__}")
        return dumps(dict(fields), indent=2, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as problem:
        help = "use strings, numbers, booleans, None, lists and dictionaries"
        raise make_error("wrong-kind", f"configuration cannot be written as JSON: {problem}", help=help) from None


def _is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    from collections.abc import Mapping

    return isinstance(value, Mapping)
