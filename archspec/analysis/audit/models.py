"""The models of an audit, and the tensors that its lines select."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from fractions import Fraction

from archspec.analysis.audit.arithmetic import Arithmetic
from archspec.analysis.audit.read import AuditLine
from archspec.analysis.count.select import SelectionRule, describe_shared_tensors, select
from archspec.analysis.explain.explain import Explainer, create_explainer
from archspec.core.diagnostics import ArchError, Diagnostic, make_error, suggest
from archspec.ir.table import ActiveParameters, Tensors
from archspec.language.syntax import tree
from archspec.pipeline.compile import as_model
from archspec.pipeline.locate import split_spec

MAX_MODELS = 32


class Models:
    """The models of an audit, each compiled once. Files of specs must be in `folder` or below it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._models: dict[str, Explainer | ArchError] = {}
        self._selections: dict[str, Explainer] = {}

    def count_selected(self, line: AuditLine) -> Fraction | None:
        """Count the selected parameters of a line's model, or their share; None if the line has no selection."""
        if not line.select:
            self._load_model(line)
            return None
        selected = self._count_selected(line, "select", line.select)
        if not line.of:
            return Fraction(selected)
        total = self._count_selected(line, "of", line.of)
        if not total:
            raise make_error("arithmetic", "cannot compute a share: `of` selects no parameters", line.spans["of"])
        return Fraction(selected, total)

    def explainer(self, line: AuditLine) -> Explainer:
        """Return the explainer for a line's selection, with relatives only if all tensors are selected."""
        if self.selects_all(line):
            return self._load_model(line)
        key = repr((line.spec, line.overrides, line.select))
        if key not in self._selections:
            model = self._load_model(line)
            table, selection = model.table, select(model.table, line.select)
            rows = zip(table.tensors, selection.chosen, selection.params, strict=True)
            tensors = Tensors(
                [
                    tensor._replace(params=params, tied_to=None if params else tensor.tied_to)
                    for tensor, chosen, params in rows
                    if chosen
                ]
            )
            params = table.params._replace(total=selection.total)  # only the total is explained
            active = table.active and _select_active(table.active, selection.chosen)
            part = table._replace(tensors=tensors, buffers=(), params=params, active=active)
            self._selections[key] = Explainer(part, (), model.uses, model.tables)
        return self._selections[key]

    def describe_shared_tensors(self, line: AuditLine) -> list[str]:
        """Describe the names that a line excludes, but whose tensors it counts under another name."""
        return describe_shared_tensors(select(self._load_model(line).table, line.select)) if line.select else []

    def selects_all(self, line: AuditLine) -> bool:
        """Whether a line selects all tensors of its model."""
        return bool(line.select) and all(select(self._load_model(line).table, line.select).chosen)

    def evaluate(self, line: AuditLine, arithmetic: Arithmetic, value: Callable[[str], Fraction]) -> Fraction:
        """Evaluate a line's arithmetic with the `value` of each line by name. Raises ArchError."""
        table = self._load_model(line).table
        counts = table.params
        totals = {"params": counts.total, "trainable": counts.trainable, "frozen": counts.frozen}
        facts: dict[str, object] = {**table.hyperparameters, **totals, "tensors": len(table.tensors)}

        def find_value(node: tree.Name) -> Fraction:
            fact, span = facts.get(node.text), arithmetic.span(node)
            if isinstance(fact, int | float) and not isinstance(fact, bool) and abs(fact) < float("inf"):
                return Fraction(str(fact))
            if node.text in facts:
                raise make_error("wrong-kind", f"hyperparameter `{node.text}` is not a number", span)
            help = suggest(node.text, list(facts)) or "put the name of another line in quotes"
            raise make_error("unknown-name", f"unknown hyperparameter `{node.text}`", span, help=help)

        return arithmetic.evaluate(find_value, value)

    def _count_selected(self, line: AuditLine, key: str, rules: tuple[SelectionRule, ...]) -> int:
        selection = select(self._load_model(line).table, rules)
        if selection.unmatched:
            pattern = selection.unmatched[0].pattern
            help = f"run `archspec count {line.spec} --by tensor` to list the names"
            span = line.spans.get(f"{key} {pattern}", line.spans[key])
            raise make_error("no-match", f"`{pattern}` matches no tensor", span, help=help)
        return selection.total

    def _load_model(self, line: AuditLine) -> Explainer:
        key = repr((line.spec, line.overrides))
        if key not in self._models:
            if len(self._models) >= MAX_MODELS:
                raise make_error(
                    "budget", f"too many models in an audit: the limit is {MAX_MODELS}", line.spans["spec"]
                )
            try:
                self._models[key] = create_explainer(as_model(self._spec(line), line.overrides))
            except ArchError as error:
                self._models[key] = _locate_error(error, line)
        model = self._models[key]
        if isinstance(model, ArchError):
            raise model
        return model

    def _spec(self, line: AuditLine) -> str:
        """Return the argument of `archspec.load` for a line's model; paths are relative to `folder`."""
        named, model = split_spec(line.spec)
        if named is None:
            return line.spec
        path = os.path.join(self.folder or os.curdir, named)  # with a directory, it is not a name on the hub
        is_inside = os.path.realpath(path).startswith(os.path.realpath(self.folder) + os.sep)
        if named == "-" or "\0" in path or not is_inside:
            help = "use a bundled name, or a file in the directory of the audit or below it"
            message = f"`{line.spec}` is outside the directory of the audit"
            raise make_error("import-outside", message, line.spans["spec"], help=help)
        return path if model is None else f"{path}:{model}"


def _select_active(active: ActiveParameters, chosen: Sequence[bool]) -> ActiveParameters:
    """Restrict the tensors that are used for one token to the selected ones; totals are unchanged."""
    indices = [index for index, tensors in active.runs for _ in range(tensors)]
    runs = tuple([(index, 1) for index, is_chosen in zip(indices, chosen, strict=True) if is_chosen])
    return active._replace(runs=runs)


def _locate_error(error: ArchError, line: AuditLine) -> ArchError:
    """Add the location of the model's name or overrides to diagnostics without a location.

    An unknown model is an error in the audit rather than a usage error of the command.
    """
    diagnostics: list[Diagnostic] = []
    for diagnostic in error.diagnostics:
        is_override = diagnostic.code in ("unknown-argument", "wrong-kind") and line.overrides
        code = "unknown-name" if diagnostic.code in ("unknown-model", "which-model") else diagnostic.code
        span = diagnostic.span or line.spans["set" if is_override else "spec"]
        diagnostics.append(diagnostic._replace(code=code, span=span))
    return ArchError(diagnostics)
