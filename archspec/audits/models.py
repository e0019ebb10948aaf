"""The models of an audit, and the tensors that its lines select."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple, NoReturn

from archspec.audits.arithmetic import EvaluationError
from archspec.audits.read import AuditLine
from archspec.counts.select import Rule, select
from archspec.explanations.explain import Explainer
from archspec.explanations.family import relatives_of
from archspec.explanations.relative import Relative
from archspec.explanations.uses import table_types, uses
from archspec.model import internals
from archspec.pipeline.compile import model_of
from archspec.pipeline.spec import parse_spec
from archspec.source import ArchError, Diagnostic, Span, fail, suggest
from archspec.syntax import tree
from archspec.table import Params, Table

MOST_MODELS = 32


class _Family(NamedTuple):
    """A model's table, its relatives, how often its layers are applied, and the definitions of its embedding tables."""

    table: Table
    relatives: tuple[Relative, ...]
    uses: Mapping[str, int]
    tables: frozenset[str]


class Models:
    """Loads each model once. Specs that are files must be in `folder` or below it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._explainers: dict[str, Explainer] = {}
        self._families: dict[str, _Family | ArchError] = {}

    def counted(self, line: AuditLine) -> Fraction | None:
        """Return the selected parameters of a line's model, or their share; None if the line has no selection."""
        if not line.select:
            self._family(line)
            return None
        part = self._sum(line, "select", line.select)
        if not line.of:
            return Fraction(part)
        whole = self._sum(line, "of", line.of)
        if not whole:
            raise fail("arithmetic", "cannot compute a share: this selects no parameters", line.spans["of"])
        return Fraction(part, whole)

    def explainer(self, line: AuditLine) -> Explainer:
        """Return the explainer for a line's selection; it includes the relatives if the whole model is selected."""
        key = repr((line.spec, line.overrides, line.select))
        if key not in self._explainers:
            self._explainers[key] = self._explainer(line)
        return self._explainers[key]

    def _explainer(self, line: AuditLine) -> Explainer:
        table, relatives, applied, tables = self._family(line)
        if self.is_whole(line):
            return Explainer(table, relatives, applied, tables)
        selection = select(table, line.select)
        rows = zip(table.tensors, selection.chosen, selection.params, strict=True)
        tensors = [
            tensor._replace(params=params, tied_to=None if params else tensor.tied_to)
            for tensor, chosen, params in rows
            if chosen
        ]
        frozen = sum(tensor.params for tensor in tensors if not tensor.trainable)
        params = Params(selection.total, selection.total - frozen, frozen)
        return Explainer(table._replace(tensors=tuple(tensors), buffers=(), params=params), (), applied, tables)

    def is_whole(self, line: AuditLine) -> bool:
        """Whether a line selects all tensors of its model."""
        return bool(line.select) and all(select(self._family(line).table, line.select).chosen)

    def checked(self, line: AuditLine, evaluate: Callable[[Callable[[tree.Name], Fraction]], Fraction]) -> Fraction:
        """Evaluate a line's arithmetic with the values of its names. Raises ArchError with the location."""
        assert line.arithmetic is not None
        facts = self._facts(line)

        def named(node: tree.Name) -> Fraction:
            value = facts.get(node.text)
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or value != value
                or abs(value) == _INFINITY
            ):
                self._no_number(node, facts)
            return Fraction(str(value))

        try:
            return evaluate(named)
        except EvaluationError as fault:
            raise fail(fault.code, fault.message, line.arithmetic.span(fault.node), help=fault.help) from None

    def _no_number(self, node: tree.Name, facts: dict[str, object]) -> NoReturn:
        if node.text in facts:
            raise EvaluationError("wrong-kind", f"hyperparameter `{node.text}` is not a number", node)
        help = suggest(node.text, list(facts)) or "put the name of another line in quotes"
        raise EvaluationError("unknown-name", f"unknown hyperparameter `{node.text}`", node, help)

    def _facts(self, line: AuditLine) -> dict[str, object]:
        """Return the hyperparameters of a line's model, and the totals available to `expect`."""
        table = self._family(line).table
        return {
            **table.hyperparameters,
            **table.params._asdict(),
            "params": table.params.total,
            "tensors": len(table.tensors),
        }

    def _sum(self, line: AuditLine, key: str, rules: tuple[Rule, ...]) -> int:
        selection = select(self._family(line).table, rules)
        if selection.unmatched:
            pattern = selection.unmatched[0].pattern
            help = f"run `archspec count {line.spec} --by tensor` to list the names"
            at = line.spans.get(f"{key} {pattern}", line.spans[key])
            raise fail("no-match", f"`{pattern}` matches no tensor", at, help=help)
        return selection.total

    def _family(self, line: AuditLine) -> _Family:
        key = repr((line.spec, line.overrides))
        if key not in self._families:
            if len(self._families) >= MOST_MODELS:
                raise fail("budget", f"too many models in an audit: the limit is {MOST_MODELS}", line.spans["spec"])
            try:
                self._families[key] = self._load(line)
            except ArchError as error:
                self._families[key] = error
        found = self._families[key]
        if isinstance(found, ArchError):
            raise found
        return found

    def _load(self, line: AuditLine) -> _Family:
        spec = parse_spec(line.spec)
        at = line.spans["spec"]
        if spec.path is not None:
            path = os.path.join(self.folder, spec.path)
            inside = os.path.realpath(path).startswith(os.path.realpath(self.folder) + os.sep)
            if spec.path == "-" or "\0" in path or not inside:
                help = "use a bundled name, or a file in the directory of the audit or below it"
                raise fail("import-outside", f"`{line.spec}` is outside the directory of the audit", at, help=help)
            name = path if spec.model is None else f"{path}:{spec.model}"
        else:
            name = line.spec
        try:
            model = model_of(name, line.overrides)
            body = internals(model).body
            return _Family(internals(model).table, relatives_of(model), uses(body), table_types(body))
        except ArchError as error:
            found = [d if d.span is not None else d._replace(span=_blamed(d, line)) for d in error.diagnostics]
            code = "unknown-name"  # an error in this file, not in the use of the command
            raise ArchError([d._replace(code=code) if d.code in _NAMES else d for d in found]) from None


def _blamed(problem: Diagnostic, line: AuditLine) -> Span:
    """Return the location for a diagnostic that has none: the model's name, or the override."""
    return line.spans["set" if problem.code in ("unknown-argument", "wrong-kind") and line.overrides else "spec"]


_NAMES = ("unknown-model", "which-model")
_INFINITY = float("inf")
