"""The base model of an adapter, named by the adapter or the user, with the head of its task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypedDict, cast

from archspec.analysis.adapter.config import TASKS, Lora
from archspec.compiler.evaluate.program import Program
from archspec.compiler.evaluate.values import Value
from archspec.compiler.resolve.unit import Definition
from archspec.core.diagnostics import ArchError, Note, make_error
from archspec.core.resources import bundled_name, specs_root
from archspec.formats.configs.family import Family, known_types, read_family
from archspec.ir.module import gc_paused
from archspec.ir.table import PlainValue, Table
from archspec.pipeline.compile import compile_location
from archspec.pipeline.family import compile_with, redeclared
from archspec.pipeline.locate import Location, configuration_location, locate
from archspec.pipeline.model import Model, ModelLike, build_model_table, get_compilation

_ALTERNATIVE_ENDS = {"CAUSAL_LM": ("LMHeadModel",), "SEQ_2_SEQ_LM": ("MTModel",)}
"""Alternative ends of class names by type of task."""

_LABELS = "labels"


def load_base_table(
    lora: Lora, model: ModelLike | None, overrides: Mapping[str, PlainValue], adapter: Location
) -> Table:
    """Load the table of the base model of an adapter. Raises ArchError if the model is unknown.

    `model` replaces the model that the adapter names, which is read with the `type`, `ignore` and `strict` of the
    adapter. Overrides of hyperparameters that the model does not have apply to its head.
    """
    if isinstance(model, Model):
        return _select_table(model, lora.task, overrides)
    if model is not None:
        return _compile_base(locate(model), lora.task, overrides)
    if not lora.base:
        raise make_error("missing-argument", "the adapter names no base model", help=_BASE_HELP)
    try:
        base = locate(lora.base)._replace(type=adapter.type, ignore=adapter.ignore, strict=adapter.strict)
        if base.kind == "stream":
            raise make_error(
                "usage", f"the base model of an adapter cannot be a stream: `{lora.base}`", help=_BASE_HELP
            )
        return _compile_base(base, lora.task, overrides)
    except ArchError as error:
        first = error.diagnostics[0]
        note = Note(f"the adapter names `{lora.base:.200}` as its base model")
        help = (
            f"{_BASE_HELP}; {first.help}" if first.help and _BASE_HELP not in first.help else first.help or _BASE_HELP
        )
        raise ArchError([first._replace(notes=(note, *first.notes), help=help), *error.diagnostics[1:]]) from None


_BASE_HELP = "name the base model with --base SPEC"


def _compile_base(location: Location, task: str | None, overrides: Mapping[str, PlainValue]) -> Table:
    if task is not None and location.kind == "configuration":
        return _compile_configuration(location, task, dict(overrides))
    model, _ = compile_location(location, {})
    model_overrides = {name: value for name, value in overrides.items() if name in model.hyperparameters}
    if model_overrides:
        model, _ = compile_location(location, model_overrides)
    return _select_table(model, task, {name: value for name, value in overrides.items() if name not in model_overrides})


# Configurations -------------------------------------------------------------------------------------------------------


class _Configuration(TypedDict, total=False):
    """The relevant fields of a configuration that compiles."""

    model_type: str | None
    architectures: list[str] | None


def _compile_configuration(location: Location, task: str, overrides: dict[str, PlainValue]) -> Table:
    """Compile a configuration with the architecture for a task."""
    model, _ = compile_location(location, {})
    data: _Configuration = json.loads(location.text if location.text is not None else _read_text(location.path))
    wanted = _find_architecture(_find_family(data, location.type), data.get("architectures"), task)
    if wanted is not None:
        if _needs_labels(task) and not data.keys() & {"id2label", "num_labels"} and _LABELS not in overrides:
            raise _unknown_labels_error(task, model.name)
        text = json.dumps({**data, "architectures": [wanted]})
        changed = configuration_location(text)._replace(
            type=location.type, ignore=location.ignore, strict=location.strict
        )
        name = f"{model.name} ({wanted})"
        return get_compilation(compile_location(changed, overrides)[0]).table._replace(model=name)
    return get_compilation(compile_location(location, overrides)[0] if overrides else model).table


def _find_family(data: _Configuration, type: str | None) -> Family:
    """Return the family of a configuration that compiles: of its type, or the only family with its architecture."""
    stated = type or data.get("model_type")
    listed = data.get("architectures") or [""]
    supported = known_types(specs_root())
    if stated in supported:
        return read_family(specs_root(), stated, {})
    families = [read_family(specs_root(), type_name, {}) for type_name in supported]
    return next(family for family in families if listed[0] in family.architectures)


def _read_text(path: str) -> str:
    with open(path, encoding="utf-8-sig") as file:
        return file.read()


def _find_architecture(family: Family, stated: list[str] | None, task: str) -> str | None:
    """Return the architecture of a family for a task; None if the stated architecture is for that task."""
    current = stated[0] if stated else next(iter(family.architectures))
    names = [name for name in family.architectures if _suits_task(name, task)]
    if not names:
        raise _no_architecture_error(family.type, task)
    return None if current in names else names[0]


def _suits_task(architecture: str, task: str) -> bool:
    if task == "FEATURE_EXTRACTION" and architecture.endswith(("HeadModel", "HeadsModel", "MTModel", "EncoderModel")):
        return False
    return architecture.endswith((TASKS[task], *_ALTERNATIVE_ENDS.get(task, ())))


# Specs ----------------------------------------------------------------------------------------------------------------


def _select_table(model: Model, task: str | None, overrides: Mapping[str, PlainValue]) -> Table:
    """Return the table of a model, or of the definition in its file with the head for a task."""
    wanted = _find_definition(model, task) if task is not None else None
    if wanted is not None:
        return _compile_with_head(model, wanted, task or "", overrides)
    if overrides:
        name = next(iter(overrides))
        raise make_error("bad-override", f"unknown hyperparameter `{name}` of {model.name}")
    return get_compilation(model).table


def _find_definition(model: Model, task: str) -> Definition | None:
    """Return the definition with the head of a task in the file of a bundled model.

    Return None if the model already has that definition, or if its file is not bundled. Raises ArchError if the bundled
    file has no such definition.
    """
    unit, current = get_compilation(model).unit, get_compilation(model).node.callee.text
    file = bundled_name(unit.source.label)
    if file is None:
        return None
    families = [read_family(specs_root(), type, {}) for type in known_types(specs_root())]
    families = [f for f in families if any(a.file == file for a in f.architectures.values())]
    definitions = [
        architecture.definition
        for family in families
        for name, architecture in family.architectures.items()
        if _suits_task(name, task) and (architecture.file == file or architecture.definition == current)
    ]
    if current in definitions or not families:
        return None
    binding = unit.names.get(definitions[0]) if len(set(definitions)) == 1 else None
    if binding is None or not isinstance(binding.target, Definition):
        raise _no_architecture_error(model.name, task)
    return binding.target


def _compile_with_head(model: Model, head: Definition, task: str, overrides: Mapping[str, PlainValue]) -> Table:
    """Compile the definition with a head, with the hyperparameters of a model."""
    if _LABELS in head.hyperparameters and _LABELS not in overrides and _needs_labels(task):
        raise _unknown_labels_error(task, model.name)
    for name, value in overrides.items():
        if name not in head.hyperparameters or not isinstance(value, bool | int | float | None):
            message = f"unknown hyperparameter `{name}` of {head.name}, or not a number: `{value!r:.40}`"
            raise make_error("bad-override", message)
    anew = redeclared(head)
    values = {name: value for name, value in get_compilation(model).values.items() if name not in anew}
    with gc_paused():
        compiled = compile_with(Program(), head.unit, head, values | cast("dict[str, Value]", dict(overrides)))
    if compiled is None:
        message = f"`{head.name}`, for the task type {task}, does not compile with the hyperparameters of {model.name}"
        raise make_error("unsupported", message, help=f"{_BASE_HELP}, with its head")
    return build_model_table(compiled._replace(name=f"{model.name} ({head.name})"), ())


def _needs_labels(task: str) -> bool:
    return task in ("SEQ_CLS", "TOKEN_CLS")


def _unknown_labels_error(task: str, model: str) -> ArchError:
    message = f"unknown number of labels: the adapter is for {task}, and {model} has no head"
    return make_error("missing-argument", message, help=f"use `--set labels=N`, or {_BASE_HELP}, with its head")


def _no_architecture_error(name: str, task: str) -> ArchError:
    message = f"no architecture of {name} ends with `{TASKS[task]}`, as the task type {task} needs"
    return make_error("unsupported", message, help=f"{_BASE_HELP}, with its head")
