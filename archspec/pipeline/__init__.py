"""From what a person names (a bundled model, a file, standard input) to a compiled model or its table."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from archspec import cache, resources
from archspec.pipeline.files import (
    Loaded,
    bundled_models,
    forget,
    fresh,
    load_file,
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
    from archspec.model import Model
    from archspec.resolve.files import Unit
    from archspec.syntax import tree

__all__ = [
    "Loaded",
    "bundled_models",
    "check",
    "compile_file",
    "compile_spec",
    "compile_text",
    "import_config",
    "load",
    "models",
    "parse_spec",
    "parsed",
    "table_of",
    "text_of",
    "written",
]

DEEPEST_LIST = 64


def load(spec: str | os.PathLike[str], /, **overrides: Any) -> Model:
    """Compiles a model.

    `spec` is a bundled name, a path to an `.arch` file, "path.arch:model name", or a path to a configuration that ends
    in `.json`; `overrides` set hyperparameters instead of those written: numbers, booleans, strings, lists, None; a
    definition or function by its name in the spec's file or in the standard library.

    Raises ArchError if there is no such model, or anything is wrong with the spec.
    """
    return compile_spec(written(spec), overrides)


def compile_spec(spec: str, overrides: dict[str, Any]) -> Model:
    """As `load`, with the overrides in a dictionary."""
    return compile_file(spec, overrides)[0]


def compile_file(spec: str, overrides: dict[str, Any]) -> tuple[Model, Loaded]:
    """As `compile_spec`, with the file that the model is of."""
    for name, value in overrides.items():
        if not _is_plain(value):
            help = "use a number, a boolean, a string, None or a list of these"
            raise fail("bad-override", f"invalid value for `{name}`: `{value!r:.80}`", help=help)
    report = Report()
    loaded, node = open_spec(parse_spec(spec), spec, report)
    return _compile_node(loaded, node, spec, overrides, report), loaded


def compile_text(text: str, label: str) -> Model:
    """The only model of a text, as `load` compiles that of a file. It can import bundled files only."""
    report = Report()
    library, program = fresh()
    with suppress(Enough):
        unit = library.define(Source(label, text), report, folder=None, root=None, path=label)
        if len(unit.models) == 1:
            (node,) = unit.models.values()
            return _compile_node(Loaded(library, program, unit), node, label, {}, report)
    report.check()
    raise fail("no-model", f"expected exactly one model in {label}")


def _compile_node(loaded: Loaded, node: tree.Model, spec: str, overrides: dict[str, Any], report: Report) -> Model:
    from archspec.elaborate.limits import OverLimit
    from archspec.elaborate.models import check_files, compile_model
    from archspec.ir import uncollected
    from archspec.model import Model

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
    return Model(
        compiled,
        overrides,
        tuple(report.diagnostics),
        lambda: _trace(loaded.unit, node, overrides),
        lambda: _bare(loaded, node, compiled),
    )


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
    return compile_file(path, {})[1].unit.source.text


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


def table_of(spec: str, overrides: dict[str, Any]) -> tuple[Table, tuple[Diagnostic, ...]]:
    """The table of a model and the warnings about it; from the cache where that is still true."""
    key = _table_key(spec, overrides)
    stored = cache.read("table", key) if key is not None else None
    table = Table.from_data(stored) if stored is not None else None
    if table is not None:
        return table, ()
    model, loaded = compile_file(spec, overrides)
    if key is not None and not model.warnings:
        cache.write("table", key, model.table.to_data(), loaded.library.raw)
    return model.table, model.warnings


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
