"""The stages from what a user names to a compiled model.

    locate     `locate.locate`               what was named: a kind, a path or a text, perhaps the name of a model
    read       `files.load_file`             the file, with those that it imports
    parse      `files.parse_cached`                text to syntax tree, from the cache if it was parsed before
    resolve    `resolve.files.Library`       imports and the names of files; `resolve.definition` does each definition
    check      `elaborate.models.check_files`  unused names, once for each file; bundled imports are not checked
    elaborate  `elaborate.models.compile_model`  modules that own tensors, bodies that compute
    model      `model.Model`                 the public object

A definition is resolved when a later stage first needs it. `tables.load_table` skips all stages but the first where a
table is cached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from archspec.compiler.elaborate.branch_checks import check_unreached_branches
from archspec.compiler.elaborate.models import check_definitions, check_files, compile_model, has_only_file_warnings
from archspec.compiler.evaluate.program import Program
from archspec.compiler.literals import definition_names
from archspec.compiler.resolve.files import Library
from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import ArchError, Report, Source, StopCompilation, internal_error, make_error
from archspec.ir.module import gc_paused
from archspec.ir.table import PlainValue
from archspec.language.syntax import tree
from archspec.pipeline.files import (
    LoadedFile,
    load_file,
    model_in,
    new_library_and_program,
    open_model,
    parse_cached,
    parse_uncached,
    remove_from_cache,
)
from archspec.pipeline.locate import Location, locate
from archspec.pipeline.model import Compilation, Model, ModelLike, get_compilation

if TYPE_CHECKING:
    from archspec.compiler.resolve.unit import Unit
    from archspec.pipeline.locate import SpecLike

MAX_LIST_DEPTH = 64


def load(spec: SpecLike, /, **overrides: PlainValue) -> Model:
    """Compile a model.

    `spec` is a bundled name, a path to an `.arch` file, "path.arch:model name", a configuration (a path that ends in
    `.json`, a directory with a `config.json`, a dictionary, a configuration object of `transformers`, or a
    `Configuration`), or a name on the hub (`owner/name`). `overrides` set hyperparameters instead of those in the spec:
    numbers, booleans, strings, lists, None; a definition or function by its name in the spec's file or in the standard
    library.

    Raises ArchError if the model does not exist, or the spec has an error.
    """
    return compile_location(locate(spec), overrides)[0]


@check_arguments
def loads(text: str, /, model: str | None = None, **overrides: PlainValue) -> Model:
    """Compile a model from the text of a spec.

    `model` names one of several models in the text. `overrides` are as for `load`, except that a hyperparameter called
    `model` cannot be set. The text can import the bundled files, but no others.

    Raises ArchError if the text does not have the model, or has an error.
    """
    return compile_text(text, "<text>", model, overrides)


def as_model(model: ModelLike, overrides: Mapping[str, PlainValue] | None = None) -> Model:
    """Return a Model: compile the argument unless it is one already.

    Raises TypeError for a Model with overrides, and ArchError as `load` does.
    """
    if not isinstance(model, Model):
        return compile_location(locate(model), dict(overrides or {}))[0]
    if overrides:
        raise TypeError("a compiled model takes no overrides; give them to `archspec.load`")
    return model


@gc_paused()
def compile_location(location: Location, overrides: dict[str, PlainValue]) -> tuple[Model, LoadedFile]:
    """Compile the model at a location; return it with the file that it is in."""
    report = Report()
    _check_overrides(overrides)
    loaded, node = open_model(location, report)
    model = _compile_node(loaded, node, location.name, overrides, report)
    model.warnings += location.omissions
    return model, loaded


@gc_paused()
def compile_text(
    text: str, label: str, name: str | None = None, overrides: Mapping[str, PlainValue] | None = None
) -> Model:
    """Compile a model of a text; `label` is what diagnostics call the text."""
    report = Report()
    overrides = dict(overrides or {})
    _check_overrides(overrides)
    library, program = new_library_and_program()
    with suppress(StopCompilation):
        unit = library.define(Source(label, text), report, folder=None, root=None, path=label)
        loaded = LoadedFile(library, program, unit)
        return _compile_node(loaded, model_in(loaded, name, report), label, overrides, report)
    raise ArchError(report.diagnostics)


@gc_paused()
def compile_text_in_folder(
    text: str, label: str, folder: str | None, root: str | None, names: Sequence[str]
) -> list[Model]:
    """Compile models of a text as if it were a file in `folder`; it can import files below `root`.

    `label` is what diagnostics call the file. Raises ArchError as `load` does.
    """
    report = Report()
    source = Source(label, text)
    library = Library(
        new_library_and_program()[0].specs,
        lambda file, report: parse_uncached(file, report) if file is source else parse_cached(file, report),
    )
    with suppress(StopCompilation):
        own = library.define(source, report, folder=folder, root=root, path=label)
        loaded = LoadedFile(library, Program(), own)
        return [_compile_node(loaded, model_in(loaded, name, report), name, {}, report) for name in names]
    raise ArchError(report.diagnostics)


def _compile_node(
    loaded: LoadedFile, node: tree.Model, spec: str, overrides: dict[str, PlainValue], report: Report
) -> Model:
    program = loaded.program
    program.begin(report, loaded.unit.source)
    compiled = None
    with suppress(StopCompilation):
        check_files(program, loaded.library, loaded.unit)
        loaded.library.add_override_names(loaded.unit, definition_names([*overrides.values()]), report)
        compiled = compile_model(program, loaded.unit, node, overrides)
        if not report.failed:
            check_unreached_branches(program, loaded.unit)
    if not has_only_file_warnings(program):
        remove_from_cache(loaded)  # so that it is found again next time
    report.sort()
    if report.failed or compiled is None:
        if not report.failed:
            raise internal_error(f"{spec} could not be compiled, but no error was reported")
        report.check()
    assert compiled is not None
    return Model(Compilation(compiled, program, loaded.unit, node, overrides), tuple(report.diagnostics))


@check_arguments
def import_config(
    source: SpecLike | Location, /, type: str | None = None, ignore: Sequence[str] = (), *, strict: bool = False
) -> str:
    """Return the text of the spec that a configuration (a `config.json`, as `transformers` writes it) describes.

    `source` is what `load` takes as a configuration. `type` replaces its `model_type`, and `ignore` are
    patterns of unknown fields to ignore, because they have no effect. Fields that the class of `transformers` does not
    read are left out, with a comment; if `strict`, they are errors.

    Raises ArchError if there is no such configuration, if it has an unknown field, or if the spec does not
    compile.
    """
    location = locate(source)
    if type is not None or ignore or strict:
        location = location._replace(type=type, ignore=tuple(ignore), strict=strict)
    model, loaded = compile_location(location, {})
    get_compilation(model).require_computation()
    if not loaded.is_configuration:
        help = "expected a file whose name ends in .json, a directory with a config.json, or standard input (`-`)"
        raise make_error("usage", f"`{location.name}` is not a configuration", help=help)
    return loaded.unit.source.text


def check(spec: SpecLike | Location, root: str | None = None) -> Report:
    """Check every definition and model of a file, or one model; return a report with the diagnostics.

    `root` is the directory from which it may import, by default that of the file.
    """
    report = Report()
    try:
        location = locate(spec)
        loaded = load_file(location._replace(root=root), report)
    except ArchError as error:
        report.diagnostics = error.diagnostics
        return report
    check_unit(loaded.program, loaded.library, loaded.unit, report, location.model)
    if not has_only_file_warnings(loaded.program):
        remove_from_cache(loaded)
    return report


def check_unit(program: Program, library: Library, unit: Unit, report: Report, model: str | None = None) -> None:
    """Add the diagnostics of a loaded file to the report: of every definition, and of every model or the one named."""
    program.begin(report, unit.source)
    with gc_paused(), suppress(StopCompilation):
        check_files(program, library, unit)
        for name, node in unit.models.items():
            if model is None or model == name:
                compile_model(program, unit, node, {})
        check_definitions(program, unit)
        if not report.failed:
            check_unreached_branches(program, unit)
    report.sort()


def _check_overrides(overrides: Mapping[str, object]) -> None:
    """Raise ArchError for a Python value that the language does not have."""
    for name, value in overrides.items():
        if not _is_plain(value):
            help = "use a number, a boolean, a string, None or a list of these"
            raise make_error("bad-override", f"invalid value for `{name}`: `{value!r:.80}`", help=help)


def _is_plain(value: object, depth: int = 0) -> bool:
    """Whether a hyperparameter can have this Python value."""
    if isinstance(value, list | tuple):
        return depth < MAX_LIST_DEPTH and all(_is_plain(item, depth + 1) for item in cast("Sequence[object]", value))
    return value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and value == value)
