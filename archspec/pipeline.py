"""From what a person names (a bundled model, a file, standard input) to a compiled model or its table."""

from __future__ import annotations

import functools
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from archspec import cache
from archspec.resources import specs_root
from archspec.source import ArchError, Diagnostic, Enough, Report, Source, fail, suggest
from archspec.table import Relative, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from archspec.formulas import Formula
    from archspec.ir import Body
    from archspec.lower.compile import Compiled
    from archspec.lower.program import Program
    from archspec.lower.trace import Trace
    from archspec.lower.units import Library, Unit
    from archspec.model import Model
    from archspec.syntax import tree
    from archspec.syntax.machine import Machine

MOST_PROGRAMS = 8
DEEPEST_LIST = 64


class Spec(NamedTuple):
    """A SPEC taken apart: a bundled name, or the path of a file ("-" is standard input) and perhaps a model's name."""

    path: str | None
    model: str | None


class Loaded(NamedTuple):
    """A file with all it imports, and what was compiled from it in this process."""

    library: Library
    program: Program
    unit: Unit


_loaded: dict[str, Loaded] = {}


def parse_spec(spec: str) -> Spec:
    """Takes a SPEC apart: `name`, `path.arch`, `path.arch:model name`, `-`, `path.json`."""
    if spec == "-" or spec.endswith((".arch", ".json")):
        return Spec(spec, None)
    if spec.startswith("-:"):
        return Spec("-", spec[2:].strip())
    head, separator, model = spec.partition(".arch:")
    if separator:
        return Spec(head + ".arch", model)
    return Spec(spec, None) if "/" in spec or os.sep in spec else Spec(None, spec)


def load(spec: str, /, **overrides: Any) -> Model:
    """Compiles a model.

    `spec` is a bundled name, a path to an `.arch` file, "path.arch:model name", or a path to a configuration that ends
    in `.json`; `overrides` set hyperparameters
    instead of those written: numbers, booleans, strings, lists, None; a definition or function by its name in the
    spec's file.

    Raises ArchError if there is no such model, or anything is wrong with the spec.
    """
    return compile_spec(spec, overrides)


def compile_spec(spec: str, overrides: dict[str, Any]) -> Model:
    """As `load`, with the overrides in a dictionary."""
    return _compile(spec, overrides)[0]


def _compile(spec: str, overrides: dict[str, Any]) -> tuple[Model, Loaded]:
    for name, value in overrides.items():
        if not _is_plain(value):
            help = "numbers, booleans, strings, None and lists of these are"
            raise fail("bad-override", f"`{value!r:.80}` is no value for `{name}`", help=help)
    report = Report()
    loaded, node = _open(parse_spec(spec), spec, report)
    return _compile_node(loaded, node, spec, overrides, report), loaded


def compile_text(text: str, label: str) -> Model:
    """The only model of a text, as `load` compiles that of a file. It can import bundled files only."""
    report = Report()
    library, program = _fresh()
    with suppress(Enough):
        unit = library.define(Source(label, text), report, folder=None, root=None, path=label)
        if len(unit.models) == 1:
            (node,) = unit.models.values()
            return _compile_node(Loaded(library, program, unit), node, label, {}, report)
    report.check()
    raise fail("no-model", f"{label} has not one model")


def _compile_node(loaded: Loaded, node: tree.Model, spec: str, overrides: dict[str, Any], report: Report) -> Model:
    from archspec.ir import uncollected
    from archspec.lower.compile import check_files, compile_model
    from archspec.lower.program import OverBudget
    from archspec.model import Model

    program = loaded.program
    program.begin(report, loaded.unit.source)
    compiled = None
    with uncollected(), suppress(Enough, OverBudget):
        check_files(program, loaded.library, loaded.unit)
        compiled = compile_model(program, loaded.unit, node, overrides)
    if report.diagnostics:
        _forget(loaded)  # what was found is found again next time
    if report.failed or compiled is None:
        if not report.failed:
            report.error("internal", f"{spec} could not be compiled, and nothing said why; please report this")
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
    from archspec.ir import uncollected
    from archspec.lower.compile import bare_body
    from archspec.lower.program import OverBudget

    report = Report()
    loaded.program.begin(report, loaded.unit.source)
    body = None
    with uncollected(), suppress(Enough, OverBudget):
        body = bare_body(loaded.program, loaded.unit, node, compiled)
    report.check()
    assert body is not None
    return body


def _trace(unit: Unit, node: tree.Model, overrides: dict[str, Any]) -> Trace:
    from archspec.lower.trace import trace_model

    return trace_model(unit, node, overrides)


def formula(spec: str, /, open: Sequence[str], **overrides: Any) -> Formula:
    """The number of parameters of a model as a polynomial in the hyperparameters named in `open`.

    `spec` and `overrides` are as for `load`; a value given for an open hyperparameter is the one it has in the model.

    Raises ArchError if the model does not compile, if what is to be open is no integer hyperparameter of it (`usage`),
    or if no formula can be derived (`no-formula`).
    """
    return formula_of(spec, open, overrides)


def formula_of(spec: str, names: Sequence[str], overrides: dict[str, Any]) -> Formula:
    """As `formula`, with the overrides in a dictionary."""
    from archspec.formulas import Formula
    from archspec.lower.derivation import derive

    model, loaded = _compile(spec, overrides)
    integers = {n: value for n, value in model.hyperparameters.items() if value.__class__ is int}
    choices = f"its integer hyperparameters are {', '.join(integers)}" if integers else "it has none that is an integer"
    if not names:
        raise fail("usage", "no hyperparameter is to be left open", help=f"as in `--open NAME,NAME`; {choices}")
    for name in names:
        if name not in model.hyperparameters:
            help = suggest(name, list(integers)) or choices
            raise fail("usage", f'"{model.name}" has no hyperparameter called `{name}`', help=help)
        if name not in integers or integers[name] < 1:
            message = f"`{name}` cannot be left open: only a hyperparameter that is a positive integer can"
            raise fail("usage", message, help=choices)
    values = {name: integers[name] for name in names}
    outcome = derive(loaded.unit, loaded.unit.models[model.name], overrides, values, integers)
    derived = Formula(model.name, values, model.hyperparameters, overrides, outcome, model.warnings)
    if (derived.at(), derived.frozen.at(values)) != (model.params.total, model.params.frozen):
        raise fail("internal", f"the formula for {model.name} does not give its total; please report this")
    return derived


def _is_plain(value: Any, depth: int = 0) -> bool:
    """Whether a Python value is one that a hyperparameter can have."""
    if isinstance(value, list | tuple):
        return depth < DEEPEST_LIST and all(_is_plain(item, depth + 1) for item in cast("list[Any]", value))
    return value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and value == value)


def models() -> list[str]:
    """Names of the bundled models."""
    return [name for _, name in bundled_models()]


def bundled_models() -> list[tuple[str, str]]:
    """The bundled models: (file, name), file by file."""
    from archspec.lower.units import bundled_files

    report = Report()
    specs = specs_root()
    found = [(file, name) for file in bundled_files(specs) for name in _bundled_unit(specs, file, report).unit.models]
    report.check()
    return found


def text_of(name: str) -> str:
    """The text of a bundled file: the one that holds the model `name`, or that is called so (`std`, `std/norm`).

    Raises ArchError if there is none.
    """
    report = Report()
    specs = os.path.realpath(specs_root())
    path = os.path.realpath(os.path.join(specs, name + ".arch"))
    if path.startswith(specs + os.sep) and os.path.isfile(path):
        with open(path, encoding="utf-8") as file:
            return file.read()
    loaded, _ = _open(Spec(None, name), name, report)
    return loaded.unit.source.text


def import_config(path: str) -> str:
    """The text of the spec that a configuration (a `config.json`, as `transformers` writes it) describes.

    Raises ArchError if there is no such file, if it has a field that is not understood, or if what it describes does
    not compile.
    """
    if not path.endswith(".json"):
        raise fail("usage", f"`{path}` is no configuration: its name does not end in .json")
    return _compile(path, {})[1].unit.source.text


def check(spec: str) -> Report:
    """Checks a whole file (or one model of it): every definition, every model. Findings are in the report."""
    from archspec.ir import uncollected
    from archspec.lower.compile import check_definitions, check_files, compile_model
    from archspec.lower.program import OverBudget

    report = Report()
    parsed = parse_spec(spec)
    try:
        if parsed.path is None:
            loaded, _ = _open(parsed, spec, report)
        else:
            loaded = _load_file(parsed.path, report)
    except ArchError as error:
        report.diagnostics = error.diagnostics
        return report
    program, unit = loaded.program, loaded.unit
    program.begin(report, unit.source)
    with uncollected(), suppress(Enough, OverBudget):
        check_files(program, loaded.library, unit)
        for name, model in unit.models.items():
            if parsed.model is None or parsed.model == name:
                compile_model(program, unit, model, {})
        check_definitions(program, unit)
    if report.diagnostics:
        _forget(loaded)
    report.sort()
    return report


def table_of(spec: str, overrides: dict[str, Any]) -> tuple[Table, tuple[Diagnostic, ...]]:
    """The table of a model and the warnings about it; from the cache where that is still true."""
    key = _table_key(spec, overrides)
    stored = cache.read("table", key) if key is not None else None
    table = Table.from_data(stored) if stored is not None else None
    if table is not None:
        return table, ()
    model, loaded = _compile(spec, overrides)
    if key is not None and not model.warnings:
        cache.write("table", key, model.table.to_data(), loaded.library.raw)
    return model.table, model.warnings


def family_of(spec: str, overrides: dict[str, Any]) -> tuple[Model, tuple[Relative, ...]]:
    """A model, and its relatives: what else its file makes of the same body and hyperparameters."""
    from archspec.ir import uncollected
    from archspec.lower.family import family
    from archspec.model import compiled_table

    model, loaded = _compile(spec, overrides)
    parsed = parse_spec(spec)
    node = loaded.unit.models[parsed.model] if parsed.model is not None else next(iter(loaded.unit.models.values()))
    with uncollected():
        related = family(loaded.program, loaded.unit, node, model._compiled)  # pyright: ignore[reportPrivateUsage]
        tables = [compiled_table(r.compiled, ()) for r in related]
    pairs = zip(related, tables, strict=True)
    return model, tuple([Relative(r.compiled.name, r.models, table, r.body, r.home) for r, table in pairs])


def _table_key(spec: str, overrides: dict[str, Any]) -> str | None:
    """What a table depends on apart from the contents of files; None for what cannot be kept."""
    from json import dumps

    parsed = parse_spec(spec)
    if parsed.path == "-":
        return None
    specs = specs_root()
    place = _place(parsed.path) if parsed.path else sorted(os.listdir(specs))
    try:
        return dumps([specs, parsed.path, place, parsed.model, sorted(overrides.items())])
    except TypeError:
        return None


# Opening files


def _open(spec: Spec, text: str, report: Report) -> tuple[Loaded, tree.Model]:
    """The file of a spec and the model in it. Raises ArchError."""
    if spec.path is None:
        loaded = _find_bundled(spec.model or "", report)
        return loaded, loaded.unit.models[spec.model or ""]
    loaded = _load_file(spec.path, report)
    found = loaded.unit.models
    label = loaded.unit.source.label
    if spec.model is not None:
        if spec.model not in found:
            report.check()
            near = suggest(spec.model, list(found)) or _choices(found)
            raise fail("unknown-model", f'{label} has no model called "{spec.model}"', help=near)
        return loaded, found[spec.model]
    if len(found) != 1:
        _forget(loaded) if report.failed else None
        report.check()
        if not found:
            raise fail("no-model", f"{label} has no model", help='add one: `model "name" = Definition(...)`')
        raise fail("which-model", f"{label} has {len(found)} models", help=_choices(found, label))
    return loaded, next(iter(found.values()))


def _choices(found: dict[str, tree.Model], label: str = "") -> str | None:
    names = ", ".join(f"{label}:{n}" if label else f'"{n}"' for n in found)
    return f"name one: {names}" if found else None


def _load_file(path: str, report: Report) -> Loaded:
    """The file at a path, or standard input. Raises ArchError if it cannot be read."""
    if path == "-":
        return _load_stdin(report)
    if "\0" in path:
        raise fail("missing-file", "no file has a zero byte in its name")
    if path.endswith(".json"):
        from archspec.configs.spec import load_config

        return _once(_place(path), lambda library: load_config(path, library, report), report)
    return _once(os.path.realpath(path), lambda library: library.load(path, report, label=path), report)


def _place(path: str) -> str:
    """What tells a file from others; what a configuration describes is called after its path, links not followed."""
    return os.path.abspath(path) if path.endswith(".json") else os.path.realpath(path)


def _once(path: str, load: Callable[[Library], Unit | None], report: Report) -> Loaded:
    """What `load` makes of the file at `path`, or what was made of it before. Raises ArchError if it cannot be read."""
    loaded = _current(path)
    if loaded is None:
        library, program = _fresh()
        unit = None
        with suppress(Enough):
            unit = load(library)
        if unit is None:
            report.check()
            raise AssertionError("a file that cannot be read is reported")
        loaded = _remember(path, Loaded(library, program, unit))
        if report.failed:
            _forget(loaded)
    return loaded


def _load_stdin(report: Report) -> Loaded:
    import sys

    from archspec.lower.units import LARGEST_FILE, decode

    text = decode(sys.stdin.buffer.read(LARGEST_FILE + 1), "<stdin>", report)
    report.check()
    assert text is not None
    library, program = _fresh()
    with suppress(Enough):
        unit = library.define(Source("<stdin>", text), report, folder=None, root=None, path="<stdin>")
        return Loaded(library, program, unit)
    raise ArchError(report.diagnostics)


def _find_bundled(name: str, report: Report) -> Loaded:
    from archspec.lower.units import bundled_files

    specs = specs_root()
    for file in bundled_files(specs):
        try:
            with open(os.path.join(specs, file + ".arch"), encoding="utf-8") as text:
                if f'"{name}"' not in text.read():
                    continue
        except (OSError, UnicodeDecodeError):
            continue
        loaded = _bundled_unit(specs, file, report)
        if name in loaded.unit.models:
            return loaded
    report.check()
    near = suggest(name, models())
    help = near or "`archspec list` shows the bundled models; a file's name has a `/` or ends in .arch"
    raise fail("unknown-model", f"no bundled model is called `{name}`", help=help)


def _bundled_unit(specs: str, file: str, report: Report) -> Loaded:
    path = os.path.realpath(os.path.join(specs, file + ".arch"))
    return _once(path, lambda library: library.bundled(file, report), report)


def _fresh() -> tuple[Library, Program]:
    from archspec.lower.program import Program
    from archspec.lower.units import Library

    return Library(os.path.realpath(specs_root()), parsed), Program()


def _current(path: str) -> Loaded | None:
    """What was loaded from `path` before, if no file of it has changed."""
    loaded = _loaded.get(path)
    if loaded is not None and any(cache.contents(p) != t for p, t in loaded.library.raw.items()):
        del _loaded[path]
        return None
    return loaded


def _remember(path: str, loaded: Loaded) -> Loaded:
    while len(_loaded) >= MOST_PROGRAMS:
        del _loaded[next(iter(_loaded))]
    _loaded[path] = loaded
    return loaded


def _forget(loaded: Loaded) -> None:
    for path in [p for p, other in _loaded.items() if other is loaded]:
        del _loaded[path]


# Trees and what is kept between runs


def parsed(source: Source, report: Report) -> tree.File:
    """The tree of a source; from the cache where the same text parsed without errors before."""
    from archspec.syntax import store

    stored = cache.read("tree", source.text)
    if stored is not None:
        try:
            return store.load(stored)
        except ValueError:
            pass
    from archspec.syntax.parse import parse

    before = len(report.diagnostics)
    file = parse(source, report, parser())
    if len(report.diagnostics) == before:
        cache.write("tree", source.text, store.dump(file))
    return file


@functools.cache
def parser() -> Machine:
    """The parser, from tables kept for this grammar, or from lark."""
    from archspec.resources import grammar_text
    from archspec.syntax.parse import parser_data, parser_from

    grammar = grammar_text()
    stored = cache.read("parser", grammar)
    if stored is not None:
        with suppress(ValueError):
            return parser_from(stored)
    data = parser_data()
    cache.write("parser", grammar, data)
    return parser_from(data)
