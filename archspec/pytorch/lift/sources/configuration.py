"""Architectures of `transformers`, from a `config.json`. Nothing is downloaded, and no code of a model is run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, cast

from archspec.core.diagnostics import ArchError, Report, Source, decode, make_error, read_bytes
from archspec.formats.configs.configuration import MAX_CONFIGURATION_BYTES
from archspec.formats.strict_json import read_json
from archspec.pytorch.lift.sources.architecture import Architecture, numbers_of
from archspec.pytorch.lift.sources.examples import SIZES, Configuration, examples, inner_configurations
from archspec.pytorch.lift.sources.fields import Fields
from archspec.pytorch.lift.sources.inputs import InputDeclaration, check_names, inputs_following_fields
from archspec.pytorch.lift.sources.inputs import examples as declared_examples
from archspec.pytorch.lift.sources.packed import with_one_image
from archspec.pytorch.lift.sources.shrinking import merge_fields
from archspec.pytorch.values.arguments import as_list

if TYPE_CHECKING:
    import torch
    from torch import nn

FILE = "config.json"

_DESCRIBING = re.compile(r"model_type$|dtype$|_version$|name_or_path$|^use_cache$|^_")
"""Fields that say nothing of what is computed."""


class _ConfigurationClass(Protocol):
    """What the classes of configurations of `transformers` have."""

    model_type: str

    def from_dict(self, fields: Mapping[str, object]) -> Configuration: ...


def is_configuration(text: str) -> bool:
    """Whether a source is a configuration, or a directory with one."""
    return text.endswith(".json") or os.path.isfile(os.path.join(text, FILE))


def architecture_of(path: str, declared: Sequence[InputDeclaration] = ()) -> Architecture:
    """Return the architecture of a configuration, with the `declared` inputs or those that its class is known to take.
    Raises ArchError if an installed `transformers` does not know it.
    """
    path = os.path.join(path, FILE) if os.path.isdir(path) else path
    report = Report()
    data = read_bytes(path, path, report, max_bytes=MAX_CONFIGURATION_BYTES)
    text = decode(data, path, report, max_bytes=MAX_CONFIGURATION_BYTES) if data is not None else None
    if text is None:
        raise ArchError(report.diagnostics)
    fields = read_json(Source(path, text)).data()
    if not isinstance(fields, dict):
        raise make_error("wrong-kind", f"expected an object in {path}")
    return architecture_from(cast("Fields", fields), declared)


def architecture_from(fields: Mapping[str, object], declared: Sequence[InputDeclaration] = ()) -> Architecture:
    """Return the architecture of the fields of a configuration. Raises ArchError."""
    transformers = _transformers()
    kind = fields.get("model_type")
    if not isinstance(kind, str):
        help = "add the `model_type` of the architecture"
        raise make_error("missing-argument", "missing `model_type` in the configuration", help=help)
    if kind not in transformers.CONFIG_MAPPING:
        message = f"transformers {transformers.__version__} has no model type `{kind}`"
        raise make_error("unknown-model", message, help="lift a class with `archspec lift FILE.py:factory`")
    configuration: _ConfigurationClass = transformers.CONFIG_MAPPING[kind]
    owner = _class_of(transformers, configuration, fields)
    try:
        actual = configuration.from_dict({**fields, "use_cache": False})
    except Exception as problem:  # of any class, as it comes from the configuration
        message = str(problem).splitlines()[0] if str(problem) else ""
        raise make_error("usage", f"invalid configuration: {type(problem).__name__}: {message}") from problem

    def build(changed: Fields) -> nn.Module:
        fields = merge_fields(actual.to_dict(), changed)

        def made(attention: str) -> nn.Module:
            return with_one_image(owner(_prepared(configuration.from_dict(fields), attention)))

        try:
            return made("sdpa")
        except (ValueError, ImportError):  # a class without this implementation of attention
            return made("eager")

    def inputs(module: nn.Module, turn: int) -> Iterator[dict[str, torch.Tensor]]:
        if not declared:
            return examples(module, SIZES[turn])
        check_names(declared, module)
        values = numbers_of(cast("Configuration", module.config).to_dict())
        choices = inputs_following_fields(declared, numbers, values)
        return (example for choice in choices for example in declared_examples(module, choice, turn))

    free = {item.name: item.sizes for item in declared}
    numbers, stated = numbers_of(actual.to_dict()), numbers_of(fields)
    stated = {name: value for name, value in stated.items() if name in numbers and not _DESCRIBING.search(name)}
    return Architecture(owner.__name__, actual.to_dict(), build, inputs, free=free, stated=stated)


def _transformers() -> ModuleType:
    """Return `transformers`, which is kept from the network. Raises ArchError if it is not installed."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        import transformers
    except ImportError:
        help = "run `pip install transformers`"
        raise make_error("missing-package", "transformers is required but not installed", help=help) from None
    transformers.logging.set_verbosity_error()
    return transformers


def _class_of(
    transformers: ModuleType, configuration: _ConfigurationClass, fields: Mapping[str, object]
) -> type[nn.Module]:
    """Return the class of the models with a configuration: the first of `architectures`, or the one without a head."""
    for name in as_list(fields.get("architectures")):
        owner = getattr(transformers, str(name), None)
        if isinstance(owner, type):
            return owner
    if configuration in transformers.MODEL_MAPPING:
        return as_list(transformers.MODEL_MAPPING[configuration])[0]
    message = f"transformers {transformers.__version__} has no model for `{configuration.model_type}`"
    raise make_error("unknown-model", message, help="name its class in `architectures`")


def _prepared(configuration: Configuration, attention: str) -> Configuration:
    """Choose implementations without branches on data, here and in the configurations inside."""
    configuration.use_cache = False
    configuration.use_pretrained_backbone = False
    for name, value in (("_attn_implementation", attention), ("_experts_implementation", "batched_mm")):
        try:
            setattr(configuration, name, value)
        except (AttributeError, TypeError, ValueError):
            continue
    for value in inner_configurations(configuration):
        _prepared(value, attention)
    return configuration
