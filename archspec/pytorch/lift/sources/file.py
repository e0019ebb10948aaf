"""Modules of Python files, `FILE.py[:factory]`, and of installed collections: `timm:NAME` and `torchvision:NAME`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

from archspec.core.diagnostics import Report, Source, make_error
from archspec.ir.ops import OPS
from archspec.language.syntax import tree
from archspec.language.syntax.parse import parse_expression
from archspec.pytorch.lift.api import as_refusal
from archspec.pytorch.lift.sources import examples as known
from archspec.pytorch.lift.sources.architecture import Architecture, ordered
from archspec.pytorch.lift.sources.fields import Fields, is_integer
from archspec.pytorch.lift.sources.inputs import InputDeclaration, check_names, examples, inputs_following_fields
from archspec.pytorch.lift.sources.item_lists import is_list_of_sizes, item_list, items_of
from archspec.pytorch.lift.subject import Subject, leave_out_cache
from archspec.pytorch.passes.settings import use_exported_settings
from archspec.pytorch.run.calling import call_exception
from archspec.pytorch.run.factories import call_factory, load_factory, parameters_of

if TYPE_CHECKING:
    import torch
    from torch import nn


COLLECTIONS = ("timm", "torchvision")


def architecture_of_file(
    text: str,
    declared: Sequence[InputDeclaration],
    are_long: bool = False,
    flags: Mapping[str, bool] = MappingProxyType({}),
) -> tuple[Architecture | None, Subject]:
    """Return the architecture of a factory in a file, and its actual module, with long inputs or usual ones.

    If the factory has arguments, all of which have defaults, then integers and booleans among them are the fields of
    the architecture, and the items of lists of integers, by the name of the list and their number; if it has none,
    there is no architecture. `flags` are values in the place of defaults. Raises ArchError if there is no such file or
    factory, or if running either fails.
    """
    path, name, factory = load_factory(text, "FILE.py:factory")
    own = parameters_of(factory)
    factory = partial(factory, **{key if key in own else key.removesuffix("_"): flags[key] for key in flags})
    module = call_factory(path, name, factory)
    taken = ["i", *inspect.signature(module.forward).parameters]  # the index of layers, and inputs
    parameters = parameters_of(factory)
    usual = {key: value.default for key, value in parameters.items() if value.default is not value.empty}
    defaults = {key: value for key, value in usual.items() if is_integer(value)}
    followed = {key: value for key, value in usual.items() if isinstance(value, int)}
    names = {key: _hyperparameter(key, taken, key in followed) for key in parameters}
    arguments = {names[key]: key for key in followed}
    sizes = {key: value for key, value in usual.items() if is_list_of_sizes(value)}
    words = {*names, *names.values(), *taken, *_words(module)}
    lists = {key: item_list(names[key], value, words) for key, value in sizes.items()}
    listed = [*lists.values()]
    items = items_of(listed)
    fields: Fields = {**{name: followed[key] for name, key in arguments.items()}, **items}
    made: WeakKeyDictionary[nn.Module, Fields] = WeakKeyDictionary()

    def by_argument(values: Fields) -> Fields:
        return {arguments[name]: value for name, value in values.items() if name in arguments}

    def build(values: Fields) -> nn.Module:
        own = {key: each.replaced(values) for key, each in lists.items()}
        found = factory(**by_argument(values), **own).eval()
        use_exported_settings(found)
        made[found] = values
        return found

    def inputs(module: nn.Module, turn: int) -> Iterator[dict[str, torch.Tensor]]:
        if declared:
            choices = inputs_following_fields(declared, defaults, {**defaults, **by_argument(made.get(module, {}))})
            return (given for choice in choices for given in examples(module, choice, turn, are_long))
        if hasattr(module, "config"):
            return known.examples(module, known.SIZES[turn])
        raise make_error(
            "usage", f"the inputs of `{name}` are unknown", help="describe each: `--input x=real[batch,seq,64]`"
        )

    check_names(declared, module)
    free = {item.name: item.sizes for item in declared}
    whole = replace(_as_it_is(module, inputs), free=free)
    if not fields:
        return None, whole
    stated = {names[key]: value for key, value in usual.items() if key not in lists} | items
    name = type(module).__name__
    return Architecture(
        name, fields, build, inputs, free=free, is_factory=True, stated=stated, lists=[*lists.values()]
    ), whole


def _words(module: nn.Module) -> set[str]:
    """Return the words in addresses of a module, and the names of attributes and variables of its parts."""
    parts = cast("Iterable[tuple[str, nn.Module]]", module.named_modules())
    words = {word for name in module.state_dict() for word in name.split(".")}
    for name, part in parts:
        words.update(name.split("."), vars(part), getattr(getattr(part.forward, "__code__", None), "co_varnames", ()))
    return words


def _hyperparameter(name: str, reserved: Collection[str], is_followed: bool) -> str:
    """Return the name of the hyperparameter for an argument, which hides operations and is no keyword."""
    is_name = isinstance(parse_expression(Source("<argument>", name), Report()), tree.Name)
    return f"{name}_" if name in reserved or (is_followed and (name in OPS or not is_name)) else name


def _as_it_is(module: nn.Module, inputs: Callable[[nn.Module, int], Iterator[dict[str, torch.Tensor]]]) -> Subject:
    problem: Exception | None = None
    for given in inputs(module, 0):
        error = call_exception(module, given)
        if error is None:
            name = type(module).__name__
            notes = as_refusal(name, partial(leave_out_cache, module, given))
            other = next((other for other in inputs(module, 1) if call_exception(module, other) is None), None)
            return Subject(module, ordered(module, given), other, name=name, notes=notes)
        problem = problem or error
    message = str(problem).splitlines()[0] if str(problem) else ""
    help = "describe all inputs that it needs with --input; write numbers for sizes that cannot be small"
    raise make_error("usage", f"calling {type(module).__name__} fails: {type(problem).__name__}: {message}", help=help)


def subject_of_collection(text: str) -> Subject:
    """Return a model of `timm:NAME` or `torchvision:NAME`. Raises ArchError if there is none."""
    import torch

    collection, _, name = text.partition(":")
    package = _imported(collection)
    known = package.list_models() if collection == "timm" else package.models.list_models()
    if name not in known:
        raise make_error("unknown-model", f"{collection} has no model `{name}`")
    module: nn.Module
    if collection == "timm":
        module = package.create_model(name, pretrained=False)
        channels, height, width = getattr(module, "pretrained_cfg", {}).get("input_size", (3, 224, 224))
    else:
        module = package.models.get_model(name, weights=None)
        channels, height, width = (3, 299, 299) if name == "inception_v3" else (3, 224, 224)
    module.eval()
    argument = next(iter(_arguments(module)))
    images = [{argument: torch.randn(batch, channels, height, width)} for batch in (2, 3)]
    return Subject(module, images[0], images[1], name=name)


def _imported(collection: str) -> ModuleType:
    try:
        package = import_module(collection)
        if collection == "torchvision":
            import_module("torchvision.models")
    except ImportError:
        help = f"run `pip install {collection}`"
        raise make_error("missing-package", f"{collection} is required but not installed", help=help) from None
    except RuntimeError as problem:  # torchvision for another version of PyTorch
        message = f"{collection} cannot be imported: {problem}"
        raise make_error("missing-package", message, help="install versions that belong together") from problem
    return package


def _arguments(module: nn.Module) -> list[str]:
    from inspect import signature

    return [*signature(module.forward).parameters]
