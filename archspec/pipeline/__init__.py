"""From what a person names (a bundled model, a file, standard input) to a compiled model or its table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from archspec import cache, resources
from archspec.pipeline.files import (
    Loaded,
    bundled_models,
    forget,
    fresh,
    load_file,
    model_in,
    models,
    open_spec,
    place,
    text_of,
)
from archspec.pipeline.spec import parse_spec, written
from archspec.pipeline.trees import parsed
from archspec.source import ArchError, Diagnostic, Enough, Report, Source, fail
from archspec.table import Table

if TYPE_CHECKING:
    from archspec.elaborate.models import Compiled
    from archspec.elaborate.trace import Trace
    from archspec.ir import Body
    from archspec.model import Model, ModelLike
    from archspec.resolve.files import Unit
    from archspec.syntax import tree

__all__ = [
    "Loaded",
    "bundled_models",
    "check",
    "compile_text",
    "import_config",
    "load",
    "loads",
    "model_of",
    "models",
    "parse_spec",
    "parsed",
    "table_of",
    "text_of",
    "written",
]

DEEPEST_LIST = 64


def load(spec: str | os.PathLike[str], /, **overrides: Any) -> Model:
    """Compile a model.

    `spec` is a bundled name, a path to an `.arch` file, "path.arch:model name", or a path to a configuration that ends
    in `.json`. `overrides` set hyperparameters instead of those in the spec: numbers, booleans, strings, lists, None; a
    definition or function by its name in the spec's file or in the standard library.

    Raises ArchError if the model does not exist, or the spec has an error.
    """
    return model_of(spec, overrides)


def loads(text: str, /, model: str | None = None, **overrides: Any) -> Model:
    """Compile a model from the text of a spec.

    `model` names one of several models in the text. `overrides` are as for `load`, except that a hyperparameter called
    `model` cannot be set. The text can import the bundled files, but no others.

    Raises ArchError if the text does not have the model, or has an error.
    """
    return compile_text(text, "<text>", model, overrides)


def model_of(model: ModelLike, overrides: Mapping[str, Any] | None = None) -> Model:
    """The model that a function was given: compiled, unless it is a Model already.

    Raises TypeError for a Model with overrides, and ArchError as `load` does.
    """
    if isinstance(model, str | os.PathLike):
        return _compile_file(written(model), dict(overrides or {}))[0]
    if overrides:
        raise TypeError("a compiled model takes no overrides; give them to `archspec.load`")
    return model


def _compile_file(spec: str, overrides: dict[str, Any]) -> tuple[Model, Loaded]:
    """A model, with the file that it is in."""
    report = Report()
    _check_overrides(overrides)
    loaded, node = open_spec(parse_spec(spec), spec, report)
    return _compile_node(loaded, node, spec, overrides, report), loaded


def compile_text(text: str, label: str, name: str | None = None, overrides: Mapping[str, Any] | None = None) -> Model:
    """A model of a text, as `load` compiles that of a file; `label` is what diagnostics call the text."""
    report = Report()
    overrides = dict(overrides or {})
    _check_overrides(overrides)
    library, program = fresh()
    with suppress(Enough):
        unit = library.define(Source(label, text), report, folder=None, root=None, path=label)
        loaded = Loaded(library, program, unit)
        return _compile_node(loaded, model_in(loaded, name, report), label, overrides, report)
    raise ArchError(report.diagnostics)


def _compile_node(loaded: Loaded, node: tree.Model, spec: str, overrides: dict[str, Any], report: Report) -> Model:
    from archspec.elaborate.limits import OverLimit
    from archspec.elaborate.models import check_files, compile_model
    from archspec.ir import uncollected
    from archspec.model import Compilation, Model

    program = loaded.program
    program.begin(report, loaded.unit.source)
    compiled = None
    with uncollected(), suppress(Enough, OverLimit):
        check_files(program, loaded.library, loaded.unit)
        loaded.library.lend(loaded.unit, [v for v in overrides.values() if isinstance(v, str)], report)
        compiled = compile_model(program, loaded.unit, node, overrides)
    if report.diagnostics:
        forget(loaded)  # what was found is found again next time
    if report.failed or compiled is None:
        if not report.failed:
            report.error(
                "internal",
                f"{spec} could not be compiled, but no error was reported; this is a bug in archspec; please report it",
            )
        report.check()
    assert compiled is not None
    compilation = Compilation(
        compiled,
        program,
        loaded.unit,
        node,
        overrides,
        lambda: _bare(loaded, node, compiled),
        lambda: _trace(loaded.unit, node, overrides),
    )
    return Model(compilation, tuple(report.diagnostics))


def _bare(loaded: Loaded, node: tree.Model, compiled: Compiled) -> Body:
    from archspec.elaborate.limits import OverLimit
    from archspec.elaborate.models import bare_body
    from archspec.ir import uncollected

    report = Report()
    loaded.program.begin(report, loaded.unit.source)
    body = None
    with uncollected(), suppress(Enough, OverLimit):
        body = bare_body(loaded.program, loaded.unit, node, compiled)
    report.check()
    assert body is not None
    return body


def _trace(unit: Unit, node: tree.Model, overrides: dict[str, Any]) -> Trace:
    from archspec.elaborate.trace import trace_model

    return trace_model(unit, node, overrides)


def _check_overrides(overrides: Mapping[str, Any]) -> None:
    """Raises ArchError for a Python value that is not one of the language."""
    for name, value in overrides.items():
        if not _is_plain(value):
            help = "use a number, a boolean, a string, None or a list of these"
            raise fail("bad-override", f"invalid value for `{name}`: `{value!r:.80}`", help=help)


def _is_plain(value: Any, depth: int = 0) -> bool:
    """Whether a Python value is one that a hyperparameter can have."""
    if isinstance(value, list | tuple):
        return depth < DEEPEST_LIST and all(_is_plain(item, depth + 1) for item in cast("list[Any]", value))
    return value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and value == value)


def import_config(path: str | os.PathLike[str]) -> str:
    """The text of the spec that a configuration (a `config.json`, as `transformers` writes it) describes.

    Raises ArchError if there is no such file, if it has a field that is not understood, or if what it describes does
    not compile.
    """
    path = os.fspath(path)
    if not path.endswith(".json"):
        raise fail("usage", f"`{path}` is not a configuration: its name does not end in .json")
    return _compile_file(path, {})[1].unit.source.text


def check(spec: str) -> Report:
    """Checks a whole file (or one model of it): every definition, every model. Findings are in the report."""
    from archspec.elaborate.limits import OverLimit
    from archspec.elaborate.models import check_definitions, check_files, compile_model
    from archspec.ir import uncollected

    report = Report()
    named = parse_spec(spec)
    try:
        if named.path is None:
            loaded, _ = open_spec(named, spec, report)
        else:
            loaded = load_file(named.path, report)
    except ArchError as error:
        report.diagnostics = error.diagnostics
        return report
    program, unit = loaded.program, loaded.unit
    program.begin(report, unit.source)
    with uncollected(), suppress(Enough, OverLimit):
        check_files(program, loaded.library, unit)
        for name, model in unit.models.items():
            if named.model is None or named.model == name:
                compile_model(program, unit, model, {})
        check_definitions(program, unit)
    if report.diagnostics:
        forget(loaded)
    report.sort()
    return report


def table_of(model: ModelLike, overrides: Mapping[str, Any] | None = None) -> tuple[Table, tuple[Diagnostic, ...]]:
    """The table of a model and the warnings about it; from the cache if that is current. Raises as `model_of` does."""
    if not isinstance(model, str | os.PathLike):
        return _table_of_model(model_of(model, overrides))
    spec, overrides = written(model), dict(overrides or {})
    key = _table_key(spec, overrides)
    stored = cache.read("table", key) if key is not None else None
    table = Table.from_data(stored) if stored is not None else None
    if table is not None:
        return table, ()
    compiled, loaded = _compile_file(spec, overrides)
    table, warnings = _table_of_model(compiled)
    if key is not None and not warnings:
        cache.write("table", key, table.to_data(), loaded.library.raw)
    return table, warnings


def _table_of_model(model: Model) -> tuple[Table, tuple[Diagnostic, ...]]:
    from archspec.model import internals

    return internals(model).table, model.warnings


def _table_key(spec: str, overrides: dict[str, Any]) -> str | None:
    """What a table depends on apart from the contents of files; None for what cannot be kept."""
    from json import dumps

    named = parse_spec(spec)
    if named.path == "-":
        return None
    specs = resources.specs_root()
    where = place(named.path) if named.path else sorted(os.listdir(specs))
    try:
        return dumps([specs, named.path, where, named.model, sorted(overrides.items())])
    except TypeError:
        return None
