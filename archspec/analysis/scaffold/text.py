"""Generation of the source of a scaffold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from archspec.analysis.scaffold.layers import Form
from archspec.analysis.scaffold.sizes import Occurrence, Sizes, name_sizes, occurrences
from archspec.analysis.scaffold.structure import Block, Index, Statement, definition_name, loop_clause, written

MAX_ALIGNED_ADDRESS = 60
"""Longer addresses are not considered for alignment."""

OUTERMOST = "Model"


class Writer:
    """Writer of the definitions for a block with given sizes. `taken` are names that definitions cannot have."""

    def __init__(self, outermost: Block, sizes: tuple[int, ...], taken: Iterable[str]) -> None:
        self.outermost = outermost
        self.imports: dict[str, None] = {}
        self._names: dict[Block, str] = {outermost: OUTERMOST}
        self._taken = {*taken, OUTERMOST}
        self._uses: dict[Block, dict[tuple[int, ...], None]] = {}
        self._order: dict[Block, None] = {}  # inner blocks first
        self._paths: dict[Block, list[tuple[str | Index, ...]]] = {}
        self._walk(outermost, sizes, ())
        for block, paths in self._paths.items():
            self._names[block] = definition_name(paths, self._taken)
            self._taken.add(self._names[block])
        self._occurrences: dict[Block, list[Occurrence]] = {}
        self._sizes: dict[Block, Sizes] = {}
        self._given: dict[Block, list[int]] = {}  # the index of the first size equal to each hyperparameter
        for block in self._order:
            self._occurrences[block] = list(occurrences(block, self._occurrences.__getitem__))
            shown = [show for statement in block.statements for show in self._shown(statement)]
            named = name_sizes(self._occurrences[block], list(self._uses[block]), shown)
            columns = list(zip(*self._uses[block], strict=True))
            self._sizes[block] = named
            self._given[block] = [columns.index(column) for column in named.parameters.values()]

    def _shown(self, statement: Statement) -> list[bool]:
        """Return which sizes appear in a statement: for a block, one per hyperparameter."""
        if not isinstance(statement.content, Block):
            return [True] * statement.arity
        given = set(self._given[statement.content])
        return [index in given for index in range(statement.arity)]

    def _walk(self, block: Block, sizes: tuple[int, ...], path: tuple[str | Index, ...]) -> None:
        """Record the sizes and paths of all uses of each block."""
        uses = self._uses.setdefault(block, {})
        if sizes in uses:
            return
        uses[sizes] = None
        start = 0
        for statement in block.statements:
            own = sizes[start : start + statement.arity]
            start += statement.arity
            if isinstance(statement.content, Block):
                address = (*path, *statement.address)
                self._paths.setdefault(statement.content, []).append(address)
                self._walk(statement.content, own, address)
        self._order.setdefault(block)

    def definitions(self, ties: Sequence[str]) -> str:
        """Return all definitions, the outermost last."""
        return "\n".join(self._definition(block, ties if block is self.outermost else ()) for block in self._order)

    def _definition(self, block: Block, ties: Sequence[str]) -> str:
        sizes = self._sizes[block]
        if block is self.outermost:
            head = ", ".join(f"{name} = {column[0]}" for name, column in sizes.parameters.items())
            inputs = "(x [batch]) -> [batch]"
        else:
            head, inputs = ", ".join(sizes.parameters), "(x [...]) -> [...]"
        lines = [*self._statements(block, sizes.texts), *(f"  {tie}" for tie in ties)]
        name = self._names[block]
        parameters = f"({head})" if head else ""
        return "\n".join(
            [f"block {name}{parameters}{inputs} {{", *lines, "  return x  # unknown: the dataflow", "}", ""]
        )

    def _statements(self, block: Block, texts: Sequence[str]) -> Iterator[str]:
        addresses = [written(statement.address) for statement in block.statements]
        width = max((len(address) for address in addresses if len(address) <= MAX_ALIGNED_ADDRESS), default=0) + 1
        start = 0
        for statement, address in zip(block.statements, addresses, strict=True):
            content, remark = self._declaration(statement, texts[start : start + statement.arity])
            start += statement.arity
            index = next((word for word in statement.address if isinstance(word, Index)), None)
            loop = f" {loop_clause(index, statement.iterations)}" if index and statement.iterations else ""
            yield f"  {address + ':':<{width}} unused {content}{loop}" + (f"  # {remark}" if remark else "")

    def _declaration(self, statement: Statement, texts: Sequence[str]) -> tuple[str, str]:
        """Return the declaration after `unused`, and a comment."""
        content = statement.content
        if isinstance(content, Form):
            self.imports.setdefault(content.name)
            given = {slot.axis: text for slot, text in zip(content.slots, texts, strict=True)}
            return _form(content, given), _doubts(content, given)
        if isinstance(content, Block):
            arguments = [texts[index] for index in self._given[content]]
            return self._names[content] + (f"({', '.join(arguments)})" if arguments else ""), ""
        type = f"{content.type} " if content.type else ""
        return f"{content.kind} {type}[{', '.join(texts)}]", content.remark


def _form(form: Form, given: dict[tuple[str, int], str]) -> str:
    sizes = [given[slot.axis] for slot in form.slots]
    named = [f"{slot.name} = {given[slot.axis]}" for slot in form.slots[form.leading :]]
    return f"{form.name}({', '.join([*sizes[: form.leading], *named, *form.fixed])})"


def _doubts(form: Form, given: dict[tuple[str, int], str]) -> str:
    """Return a comment with alternatives, and with hyperparameters that do not affect any shape."""
    doubts = [f"or {_form(other, given)}" for other in form.others]
    if form.open:
        doubts.append(", ".join(form.open))
    return f"unknown: {'; '.join(doubts)}" if doubts else ""
