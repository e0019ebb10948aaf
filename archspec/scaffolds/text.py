"""The text of a scaffold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from archspec.scaffolds.addresses import definition_name, rounds, written
from archspec.scaffolds.layers import Form
from archspec.scaffolds.sizes import Place, Sizes, name_sizes, places
from archspec.scaffolds.structure import Block, Index, Statement

WIDEST = 60
"""Addresses that are longer do not make others wait for them."""

OUTERMOST = "Model"


class Writer:
    """Writes the definitions for a block, its sizes given. `taken` are names that definitions cannot have."""

    def __init__(self, outermost: Block, sizes: tuple[int, ...], taken: Iterable[str]) -> None:
        self.outermost = outermost
        self.imports: dict[str, None] = {}
        self._names: dict[Block, str] = {outermost: OUTERMOST}
        self._taken = {*taken, OUTERMOST}
        self._uses: dict[Block, dict[tuple[int, ...], None]] = {}
        self._order: dict[Block, None] = {}  # what is inside of others first
        self._paths: dict[Block, list[tuple[str | Index, ...]]] = {}
        self._walk(outermost, sizes, ())
        for block, paths in self._paths.items():
            self._names[block] = definition_name(paths, self._taken)
            self._taken.add(self._names[block])
        self._places: dict[Block, list[Place]] = {}
        self._sizes: dict[Block, Sizes] = {}
        self._given: dict[Block, list[int]] = {}  # for each hyperparameter the first size that is its value
        for block in self._order:
            self._places[block] = list(places(block, self._places.__getitem__))
            shown = [show for statement in block.statements for show in self._shown(statement)]
            named = name_sizes(self._places[block], list(self._uses[block]), shown)
            columns = list(zip(*self._uses[block], strict=True))
            self._sizes[block] = named
            self._given[block] = [columns.index(column) for column in named.parameters.values()]

    def _shown(self, statement: Statement) -> list[bool]:
        """Which of its sizes a statement shows: one for each hyperparameter of a block."""
        if not isinstance(statement.what, Block):
            return [True] * statement.arity
        given = set(self._given[statement.what])
        return [place in given for place in range(statement.arity)]

    def _walk(self, block: Block, sizes: tuple[int, ...], path: tuple[str | Index, ...]) -> None:
        """Notes with which sizes each block is used, and where."""
        uses = self._uses.setdefault(block, {})
        if sizes in uses:
            return
        uses[sizes] = None
        start = 0
        for statement in block.statements:
            own = sizes[start : start + statement.arity]
            start += statement.arity
            if isinstance(statement.what, Block):
                place = (*path, *statement.address)
                self._paths.setdefault(statement.what, []).append(place)
                self._walk(statement.what, own, place)
        self._order.setdefault(block)

    def definitions(self, ties: Sequence[str]) -> str:
        """All definitions, the outermost last."""
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
            [f"block {name}{parameters}{inputs} {{", *lines, "  return x  # not known: the wiring", "}", ""]
        )

    def _statements(self, block: Block, texts: Sequence[str]) -> Iterator[str]:
        addresses = [written(statement.address) for statement in block.statements]
        width = max((len(address) for address in addresses if len(address) <= WIDEST), default=0) + 1
        start = 0
        for statement, address in zip(block.statements, addresses, strict=True):
            what, remark = self._owned(statement, texts[start : start + statement.arity])
            start += statement.arity
            index = next((word for word in statement.address if isinstance(word, Index)), None)
            loop = f" {rounds(index, statement.rounds)}" if index and statement.rounds else ""
            yield f"  {address + ':':<{width}} unused {what}{loop}" + (f"  # {remark}" if remark else "")

    def _owned(self, statement: Statement, texts: Sequence[str]) -> tuple[str, str]:
        """What stands behind `unused`, and what is to be said of it."""
        what = statement.what
        if isinstance(what, Form):
            self.imports.setdefault(what.name)
            given = {slot.axis: text for slot, text in zip(what.slots, texts, strict=True)}
            return _form(what, given), _doubts(what, given)
        if isinstance(what, Block):
            arguments = [texts[place] for place in self._given[what]]
            return self._names[what] + (f"({', '.join(arguments)})" if arguments else ""), ""
        type = f"{what.type} " if what.type else ""
        return f"{what.kind} {type}[{', '.join(texts)}]", what.remark


def _form(form: Form, given: dict[tuple[str, int], str]) -> str:
    sizes = [given[slot.axis] for slot in form.slots]
    named = [f"{slot.name} = {given[slot.axis]}" for slot in form.slots[form.leading :]]
    return f"{form.name}({', '.join([*sizes[: form.leading], *named, *form.fixed])})"


def _doubts(form: Form, given: dict[tuple[str, int], str]) -> str:
    """What else it may be, and which of its hyperparameters no shape shows."""
    doubts = [f"or {_form(other, given)}" for other in form.others]
    if form.open:
        doubts.append(", ".join(form.open))
    return f"not known: {'; '.join(doubts)}" if doubts else ""
