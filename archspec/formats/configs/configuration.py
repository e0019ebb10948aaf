"""Configurations in the forms that users pass: files, data, and objects of `transformers`.

Every command imports this module; those that read the configuration are imported when they are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from archspec.core.diagnostics import make_error
from archspec.core.record import Record

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Protocol, TypeAlias, TypeGuard

    class ConfigurationObject(Protocol):
        """The interface of configurations in `transformers`, which archspec does not import."""

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
"""Maximum size of a configuration; tens of thousands of labels make one large."""

CONFIG_FILE = "config.json"
ADAPTER_FILE = "adapter_config.json"


class Configuration(Record):
    """A configuration, and the decisions that it leaves to the user.

    `source` is a path, a name on the hub, a dictionary or an object of `transformers`. `type` replaces its
    `model_type`. `ignore` are patterns of unknown fields to ignore, because they have no effect. If it is `strict`,
    fields that the class of `transformers` does not read are errors.
    """

    source: str | os.PathLike[str] | ConfigurationData
    type: str | None = None
    ignore: tuple[str, ...] = ()
    strict: bool = False


def is_configuration_data(value: object) -> TypeGuard[ConfigurationData]:
    """Whether a value is the contents of a configuration: a mapping, or an object of `transformers`."""
    if isinstance(value, dict):
        return True
    is_object = hasattr(value, "to_dict") and hasattr(value, "model_type") and not isinstance(value, type)
    return is_object or _is_mapping(value)


def configuration_json(data: ConfigurationData) -> str:
    """Return a configuration as JSON. Raises ArchError for values that JSON cannot represent."""
    from json import dumps

    fields: object = data if _is_mapping(data) else cast("ConfigurationObject", data).to_dict()
    try:
        if not _is_mapping(fields):
            raise TypeError(f"`to_dict()` returned {fields.__class__.__name__}")
        return dumps(dict(fields), indent=2)
    except (TypeError, ValueError, RecursionError) as error:
        help = "use strings, numbers, booleans, None, lists and dictionaries"
        raise make_error("wrong-kind", f"configuration cannot be written as JSON: {error}", help=help) from None


def _is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    from collections.abc import Mapping

    return isinstance(value, Mapping)
