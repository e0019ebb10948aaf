"""The models of an audit, and the tensors that its lines select."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from fractions import Fraction

from archspec.analysis.audit.arithmetic import Arithmetic
from archspec.analysis.audit.read import AuditLine
from archspec.analysis.count.select import SelectionRule, select
from archspec.analysis.explain.explain import Explainer, explainer_of
from archspec.core.diagnostics import ArchError, Diagnostic, make_error, suggest
from archspec.ir.table import ActiveParameters, Tensors
from archspec.language.syntax import tree
from archspec.pipeline.compile import as_model
from archspec.pipeline.locate import split_spec

MAX_MODELS = 32


class Models:
    """Loads each model once. Specs that are files must be in `folder` or below it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._models: dict[str, Explainer | ArchError] = {}
        self._selections: dict[str, Explainer] = {}

    def counted(self, line: AuditLine) -> Fraction | None:
        """Return the selected parameters of a line's model, or their share; None if the line has no selection."""
        if not line.select:
            self._model(line)
            return None
        part = self._sum(line, "select", line.select)
        if not line.of:
            return Fraction(part)
        whole = self._sum(line, "of", line.of)
        if not whole:
            raise make_error("arithmetic", "cannot compute a share: this selects no parameters", line.spans["of"])
        return Fraction(part, whole)

    def explainer(self, line: AuditLine) -> Explainer:
        """Return the explainer for a line's selection; it includes the relatives if the whole model is selected."""
        if self.is_whole(line):
            return self._model(line)
        key = repr((line.spec, line.overrides, line.select))
        if key not in self._selections:
            model = self._model(line)
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
            active = table.active and _selected(table.active, selection.chosen)
            part = table._replace(tensors=tensors, buffers=(), params=params, active=active)
            self._selections[key] = Explainer(part, (), model.uses, model.tables)
        return self._selections[key]

    def is_whole(self, line: AuditLine) -> bool:
        """Whether a line selects all tensors of its model."""
        return bool(line.select) and all(select(self._model(line).table, line.select).chosen)

    def evaluate(self, line: AuditLine, arithmetic: Arithmetic, value: Callable[[str], Fraction]) -> Fraction:
        """Evaluate a line's arithmetic with the `value` of each other line. Raises ArchError."""
        table = self._model(line).table
        counts = table.params
        totals = {"params": counts.total, "trainable": counts.trainable, "frozen": counts.frozen}
        facts: dict[str, object] = {**table.hyperparameters, **totals, "tensors": len(table.tensors)}

        def named(node: tree.Name) -> Fraction:
            fact, at = facts.get(node.text), arithmetic.span(node)
            if isinstance(fact, int | float) and not isinstance(fact, bool) and abs(fact) < float("inf"):
                return Fraction(str(fact))
            if node.text in facts:
                raise make_error("wrong-kind", f"hyperparameter `{node.text}` is not a number", at)
            help = suggest(node.text, list(facts)) or "put the name of another line in quotes"
            raise make_error("unknown-name", f"unknown hyperparameter `{node.text}`", at, help=help)

        return arithmetic.evaluate(named, value)

    def _sum(self, line: AuditLine, key: str, rules: tuple[SelectionRule, ...]) -> int:
        selection = select(self._model(line).table, rules)
        if selection.unmatched:
            pattern = selection.unmatched[0].pattern
            help = f"run `archspec count {line.spec} --by tensor` to list the names"
            at = line.spans.get(f"{key} {pattern}", line.spans[key])
            raise make_error("no-match", f"`{pattern}` matches no tensor", at, help=help)
        return selection.total

    def _model(self, line: AuditLine) -> Explainer:
        key = repr((line.spec, line.overrides))
        if key not in self._models:
            if len(self._models) >= MAX_MODELS:
                raise make_error(
                    "budget", f"too many models in an audit: the limit is {MAX_MODELS}", line.spans["spec"]
                )
            try:
                self._models[key] = explainer_of(as_model(self._spec(line), line.overrides))
            except ArchError as error:
                self._models[key] = _located(error, line)
        found = self._models[key]
        if isinstance(found, ArchError):
            raise found
        return found

    def _spec(self, line: AuditLine) -> str:
        """Return a line's model as `archspec.load` takes it; the path of a file is relative to the folder."""
        named, model = split_spec(line.spec)
        if named is None:
            return line.spec
        path = os.path.join(self.folder or os.curdir, named)  # never a name on the hub
        inside = os.path.realpath(path).startswith(os.path.realpath(self.folder) + os.sep)
        if named == "-" or "\0" in path or not inside:
            help = "use a bundled name, or a file in the directory of the audit or below it"
            message = f"`{line.spec}` is outside the directory of the audit"
            raise make_error("import-outside", message, line.spans["spec"], help=help)
        return path if model is None else f"{path}:{model}"


def _selected(active: ActiveParameters, chosen: Sequence[bool]) -> ActiveParameters:
    """Return which of the selected tensors are used for one token; the totals stay those of all tensors."""
    places = [place for place, tensors in active.runs for _ in range(tensors)]
    runs = tuple([(place, 1) for place, is_chosen in zip(places, chosen, strict=True) if is_chosen])
    return active._replace(runs=runs)


def _located(error: ArchError, line: AuditLine) -> ArchError:
    """Locate diagnostics that have no location at the model's name or its overrides.

    A wrong name of a model is an error in the audit, rather than in the use of the command.
    """
    found: list[Diagnostic] = []
    for problem in error.diagnostics:
        is_override = problem.code in ("unknown-argument", "wrong-kind") and line.overrides
        code = "unknown-name" if problem.code in ("unknown-model", "which-model") else problem.code
        span = problem.span or line.spans["set" if is_override else "spec"]
        found.append(problem._replace(code=code, span=span))
    return ArchError(found)
