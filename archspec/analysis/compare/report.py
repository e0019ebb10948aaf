"""The report of `archspec compare`: tables, bars and notes, the csv rows, and the JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archspec.analysis.compare.compare import Comparison, ComparisonRow, ComponentRow, Value
from archspec.analysis.compare.components import Component
from archspec.core.addresses import relative
from archspec.core.reports.documents import Document, finite, finite_value
from archspec.core.reports.page import Page
from archspec.core.reports.tables import Bar, Column, Row, View, columns
from archspec.core.reports.text import beside, listed, literal, number, parameters, titles


def page(comparison: Comparison, format: str = "table") -> Page:
    """Return the report. Markdown has no bars."""
    names = _model_titles(comparison)
    totals = [figure for figure in comparison.totals if any(figure.values)]
    tables = [_hyperparameter_table(comparison, names), _definition_table(comparison, names)]
    tables.append(_replaced_table(comparison, names))
    tables += [_number_table("parameters", totals, names), _number_table("role", comparison.roles, names)]
    tables.append(_component_table(comparison, names))
    if format != "markdown":
        tables.append(_bar_table(comparison, names))
    if comparison.costs is not None:
        sizes = ", ".join(f"{name} = {size}" for name, size in comparison.costs.dims.items())
        tables.append(_number_table(f"at {sizes}", comparison.costs.figures, names))
    counts = [beside(parameters(table.params.total)) for table in comparison.models]
    heading = listed([name + count for name, count in zip(names, counts, strict=True)])
    return Page(heading, [*(table for table in tables if table.rows), _notes(comparison, names)])


def _model_titles(comparison: Comparison) -> list[str]:
    return titles((table.model, table.overrides) for table in comparison.models)


# Tables ---------------------------------------------------------------------------------------------------------------


def _hyperparameter_table(comparison: Comparison, names: Sequence[str]) -> View:
    shown = [Column("name", "hyperparameter", fit="shorten")]
    shown += [Column(str(i), name, fit="wrap", drop=_drop_priority(i)) for i, name in enumerate(names)]
    rows: list[Row] = []
    for setting in comparison.settings:
        values = {str(i): literal(setting.values[i]) if i in setting.values else "-" for i in range(len(names))}
        rows.append({"name": setting.name, **values})
    return View(shown, rows)


def _definition_table(comparison: Comparison, names: Sequence[str]) -> View:
    """Return a row for each definition that differs although its name is the same."""
    shown = [Column("name", "definition", fit="shorten")]
    shown += [
        Column(str(i), f"in {name}", "-", fit="wrap", drop=_drop_priority(i)) for i, name in enumerate(names) if i
    ]
    rows: list[Row] = [
        {"name": name, **{str(i): format_changes(model) for i, model in enumerate(changes)}}
        for name, changes in comparison.definitions
    ]
    return View(shown, rows)


def _replaced_table(comparison: Comparison, names: Sequence[str]) -> View:
    """Return a row for each part that a model has in place of another one."""
    shown = [Column("name", "replaced"), Column("layers", "in layers", "(no stack)", fit="shorten")]
    shown += [Column(str(i), name, "-", fit="wrap", drop=_drop_priority(i)) for i, name in enumerate(names)]
    rows: list[Row] = [
        {
            "name": part.name,
            "layers": f"{part.address}.{part.layers}" if part.layers else None,
            **{str(i): text or None for i, text in enumerate(part.parts)},
        }
        for part in comparison.replaced
    ]
    return View(shown, rows)


def format_changes(changes: Mapping[str, int]) -> str:
    """Format numbers of changes: `2 steps moved, 1 tensor added`."""
    words: list[str] = []
    for kind, count in changes.items():
        if kind.startswith("tensors "):
            text = kind.removeprefix("tensors ")
            words.append(f"{number(count, 'tensor')} {_MADE.get(text, text)}")
        else:
            noun, text = _CHANGES[kind]
            words.append(f"{number(count, noun)} {text}")
    return ", ".join(words)


_MADE = {"param": "made a parameter", "buffer": "made a buffer"}
_CHANGES = {
    "moved": ("step", "moved"),
    "added": ("step", "added"),
    "removed": ("step", "removed"),
    "reads": ("step", "with different inputs"),
    "computes": ("step", "with a different computation"),
    "times": ("step", "applied a different number of times"),
    "returns": ("output", "different"),
    "table": ("constant", "different"),
    "differs": ("computation", "different"),
}
"""The noun and the description of the changes of operations by kind."""


def _number_table(heading: str, figures: Sequence[ComparisonRow], names: Sequence[str]) -> View:
    shown = [Column("name", heading, "(none)", style="role"), *_number_columns(names)]
    return View(shown, [{"name": figure.name, "role": figure.name, **_cells(figure)} for figure in figures])


def _number_columns(names: Sequence[str]) -> list[Column]:
    """Return the columns of values and ratios to the first model, and the difference if there are two models."""
    shown = [Column(str(i), name, "-", drop=_drop_priority(i)) for i, name in enumerate(names)]
    if len(names) == 2:
        return [*shown, Column("difference 1", "difference", drop=2), Column("ratio 1", "ratio", drop=3, style="unit")]
    ratios = [
        Column(f"ratio {i}", f"ratio of {name}", drop=1_000 - i, style="unit") for i, name in enumerate(names) if i
    ]
    return [*shown, *ratios]


def _drop_priority(model: int) -> int:
    """Return the priority at which the column of a model is omitted: the last model first, the first two never."""
    return 1_000_000 - model if model > 1 else 0


def _cells(figure: ComparisonRow) -> Row:
    cells: Row = {}
    for i, value in enumerate(figure.values):
        ratio = figure.ratios[i]
        cells |= {
            str(i): value if value is None or isinstance(value, int) else f"{value:,}",
            f"difference {i}": figure.differences[i],
            f"ratio {i}": "" if ratio is None else _format_ratio(ratio),
        }
    return cells


def _format_ratio(ratio: float) -> str:
    """Format a ratio with three significant digits, or with more if it would round to 1."""
    if ratio in (0, 1):
        return f"x {ratio:.0f}"
    if ratio < 0.001:
        return "x < 0.001"
    digits = next((digits for digits, limit in enumerate((100, 10, 1, 0.1, 0.01)) if ratio >= limit), 5)
    while float(f"{ratio:.{digits}f}") == 1:
        digits += 1
    return f"x {ratio:,.{digits}f}"


def _component_table(comparison: Comparison, names: Sequence[str]) -> View:
    shown = [Column("part", "part", fit="shorten")]
    shown += [Column(f"in {i}", f"in {name}", fit="shorten", drop=10_000 - i) for i, name in enumerate(names) if i]
    shown += [*_number_columns(names), Column("by", "matched by", fit="wrap", drop=1, style="dim")]
    rows: list[Row] = []
    for part, labels in zip(comparison.parts, _component_labels(comparison), strict=True):
        row: Row = {"part": "  " * part.row.level + next(filter(None, labels)), **_cells(part.params)}
        row |= {f"in {i}": label or "-" for i, label in enumerate(labels)}
        row["by"] = ", ".join(dict.fromkeys(by for by in part.row.by if by)) or "no counterpart"
        rows.append(row)
    return View(shown, rows)


def _component_labels(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return the labels of the components of each model: addresses relative to the parent, with repetitions."""
    parent_addresses: list[list[str]] = []
    labels: list[tuple[str, ...]] = []
    for part in comparison.parts:
        level, groups = part.row.level, part.row.groups
        del parent_addresses[level:]
        parents = parent_addresses[-1] if parent_addresses else [""] * len(groups)
        labels.append(
            tuple(
                " + ".join(_component_label(component, parent) for component in group)
                for group, parent in zip(groups, parents, strict=True)
            )
        )
        parent_addresses.append([group[0].address if len(group) == 1 else "" for group in groups])
    return labels


def _component_label(component: Component, parent: str) -> str:
    times = f" ({component.times} x)" if component.times > 1 else ""
    return f"{relative(component.address, parent) or '(the model)'}{times}"


def _bar_table(comparison: Comparison, names: Sequence[str]) -> View:
    """Return a bar for each component of each model, all on one scale."""
    maximum = max((_as_integer(value) or 0 for part in comparison.parts for value in part.params.values), default=0)
    rows: list[Row] = []
    for part, labels in zip(comparison.parts, _component_labels(comparison), strict=True):
        label = "  " * part.row.level + next(filter(None, labels))
        for name, value in zip(names, map(_as_integer, part.params.values), strict=True):
            if value is not None:
                rows.append({"part": label, "model": name, "bar": Bar(value, maximum), "params": value})
                label = ""
    shown = [
        Column("part", "part", fit="shorten"),
        Column("model", "in", fit="shorten"),
        Column("bar", "parameters", fit="bar"),
        Column("params", ""),
    ]
    return View(shown, rows)


_OPERATIONS = {
    "equal": " and the same operations",
    "equal up to rounding": " and are equal up to rounding, although some operations are written differently",
    "different": ", but their operations differ; use `archspec diff` to list the differences",
}


def _notes(comparison: Comparison, names: Sequence[str]) -> list[str]:
    """Return remarks on the tables, one per line."""
    notes = ["each tensor is counted once, at its first name; differences and ratios are relative to the first model"]
    for name, operations in zip(names[1:], comparison.operations[1:], strict=True):
        if operations is not None:
            notes.append(f"{names[0]} and {name} have the same tensors{_OPERATIONS[operations]}")
    embeddings = next(figure for figure in comparison.totals if figure.name == "without embeddings")
    for name, value in zip(names, embeddings.values, strict=True):
        if value is None and any(embeddings.values):
            notes.append(f"{name}: no tensor has the role `embedding`")
    for name, model in zip(names, comparison.models, strict=True):
        notes += [f"{name}: {note}" for note in model.notes]
        if model.unchecked:
            notes.append(f"{name}: `expect` statements, which hold without overrides, were not checked")
    if comparison.costs is not None:
        notes += [f"{name}: {note}" for name, note in zip(names, comparison.costs.notes, strict=True) if note]
    return notes


def _as_integer(value: Value) -> int | None:
    return value if isinstance(value, int) else None


# Machine-readable rows ------------------------------------------------------------------------------------------------


def rows(comparison: Comparison) -> View:
    """Return the rows of the csv output: one for each value."""
    names = _model_titles(comparison)
    values: list[Row] = []

    def add(section: str, figure: ComparisonRow, model: int, address: str = "", by: str = "") -> None:
        ratio = figure.ratios[model]
        values.append(
            {
                "section": section,
                "name": figure.name,
                "model": names[model],
                "address": address,
                "value": figure.plain[model],
                "difference": figure.differences[model],
                "ratio": None if ratio is None else round(ratio, 6),
                "by": by,
            }
        )

    for setting in comparison.settings:
        for i, value in setting.values.items():
            row: Row = {"section": "hyperparameters", "name": setting.name, "model": names[i], "address": ""}
            values.append(row | {"value": literal(value), "difference": None, "ratio": None, "by": ""})
    for name, changes in comparison.definitions:
        for i, model in enumerate(changes):
            if model:
                row = {"section": "definitions", "name": name, "model": names[i], "address": ""}
                values.append(row | {"value": format_changes(model), "difference": None, "ratio": None, "by": ""})
    for part in comparison.replaced:
        for i, text in enumerate(part.parts):
            if text:
                address = f"{part.address}.{part.layers}" if part.layers else ""
                row = {"section": "replaced", "name": part.name, "model": names[i], "address": address}
                values.append(row | {"value": text, "difference": None, "ratio": None, "by": ""})
    costs = comparison.costs.figures if comparison.costs is not None else ()
    for section, figures in (("totals", comparison.totals), ("roles", comparison.roles), ("costs", costs)):
        for figure in figures:
            for i in range(len(names)):
                add(section, figure, i)
    for part in comparison.parts:
        for i, group in enumerate(part.row.groups):
            if group:
                add("components", part.params, i, " + ".join(component.address for component in group), part.row.by[i])
    return View(columns("section", "name", "model", "address", "value", "difference", "ratio", "by"), values)


# Documents ------------------------------------------------------------------------------------------------------------


def contents(comparison: Comparison) -> Document:
    """Return the document of the JSON and YAML output. Values are in the order of the models."""
    costs = comparison.costs
    return {
        "format": 1,
        "models": [
            {"model": table.model, "overrides": finite(table.overrides), "params": table.params._asdict()}
            for table in comparison.models
        ],
        "hyperparameters": [
            {
                "name": setting.name,
                "has": [i in setting.values for i in range(len(comparison.models))],
                "values": [finite_value(setting.values.get(i)) for i in range(len(comparison.models))],
            }
            for setting in comparison.settings
        ],
        "definitions": [{"name": name, "changes": [*changes]} for name, changes in comparison.definitions],
        "replaced": [
            {**part._asdict(), "parts": [text or None for text in part.parts]} for part in comparison.replaced
        ],
        "totals": [_figure_entry(figure) for figure in comparison.totals],
        "roles": [_figure_entry(figure) for figure in comparison.roles],
        "components": [_part_entry(part) for part in comparison.parts],
        "operations": list(comparison.operations),
        "costs": None
        if costs is None
        else {"dims": costs.dims, "notes": list(costs.notes), "figures": [*map(_figure_entry, costs.figures)]},
    }


def _figure_entry(figure: ComparisonRow) -> Document:
    return {
        "name": figure.name or None,
        "values": list(figure.plain),
        "differences": list(figure.differences),
        "ratios": [ratio if ratio is None else round(ratio, 6) for ratio in figure.ratios],
    }


def _part_entry(part: ComponentRow) -> Document:
    row, figure = part.row, _figure_entry(part.params)
    del figure["name"]
    return {
        "level": row.level,
        "by": [by or None for by in row.by],
        "parts": [
            [
                {
                    "address": component.address,
                    "type": component.type,
                    "times": component.times,
                    "each": component.each,
                    "params": component.total,
                    "role": component.role,
                }
                for component in group
            ]
            for group in row.groups
        ],
        **figure,
    }
