"""The generator of the source of a scaffold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from archspec.analysis.scaffold.layers import LayerCall
from archspec.analysis.scaffold.sizes import Occurrence, Sizes, iter_occurrences, name_sizes
from archspec.analysis.scaffold.structure import (
    Block,
    LoopIndex,
    Statement,
    choose_definition_name,
    format_address,
    format_loop,
)

MAX_ALIGNED_ADDRESS = 60
"""Maximum length of an address that is considered for alignment."""

OUTERMOST = "Model"


class Writer:
    """Writer of the definitions for a block with given sizes. `reserved` are names that definitions cannot have."""

    def __init__(self, outermost: Block, sizes: tuple[int, ...], reserved: Iterable[str]) -> None:
        self.outermost = outermost
        self.imports: dict[str, None] = {}
        self._names: dict[Block, str] = {outermost: OUTERMOST}
        self._reserved = {*reserved, OUTERMOST}
        self._uses: dict[Block, dict[tuple[int, ...], None]] = {}
        self._order: dict[Block, None] = {}  # nested blocks precede their parents
        self._paths: dict[Block, list[tuple[str | LoopIndex, ...]]] = {}
        self._record_uses(outermost, sizes, ())
        for block, paths in self._paths.items():
            self._names[block] = choose_definition_name(paths, self._reserved)
            self._reserved.add(self._names[block])
        self._occurrences: dict[Block, list[Occurrence]] = {}
        self._sizes: dict[Block, Sizes] = {}
        self._parameter_indices: dict[Block, list[int]] = {}  # the index of the first size equal to each hyperparameter
        for block in self._order:
            self._occurrences[block] = list(iter_occurrences(block, self._occurrences.__getitem__))
            is_shown = [show for statement in block.statements for show in self._shown_sizes(statement)]
            named = name_sizes(self._occurrences[block], list(self._uses[block]), is_shown)
            columns = list(zip(*self._uses[block], strict=True))
            self._sizes[block] = named
            self._parameter_indices[block] = [columns.index(column) for column in named.parameters.values()]

    def _shown_sizes(self, statement: Statement) -> list[bool]:
        """Return, for each size of a statement, whether it appears: for a block, one per hyperparameter."""
        if not isinstance(statement.content, Block):
            return [True] * statement.arity
        passed = set(self._parameter_indices[statement.content])
        return [index in passed for index in range(statement.arity)]

    def _record_uses(self, block: Block, sizes: tuple[int, ...], path: tuple[str | LoopIndex, ...]) -> None:
        """Record the sizes and paths of all uses of each block."""
        uses = self._uses.setdefault(block, {})
        if sizes in uses:
            return
        uses[sizes] = None
        start = 0
        for statement in block.statements:
            statement_sizes = sizes[start : start + statement.arity]
            start += statement.arity
            if isinstance(statement.content, Block):
                address = (*path, *statement.address)
                self._paths.setdefault(statement.content, []).append(address)
                self._record_uses(statement.content, statement_sizes, address)
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
        addresses = [format_address(statement.address) for statement in block.statements]
        width = max((len(address) for address in addresses if len(address) <= MAX_ALIGNED_ADDRESS), default=0) + 1
        start = 0
        for statement, address in zip(block.statements, addresses, strict=True):
            content, remark = self._declaration(statement, texts[start : start + statement.arity])
            start += statement.arity
            index = next((word for word in statement.address if isinstance(word, LoopIndex)), None)
            loop = f" {format_loop(index, statement.iterations)}" if index and statement.iterations else ""
            yield f"  {address + ':':<{width}} unused {content}{loop}" + (f"  # {remark}" if remark else "")

    def _declaration(self, statement: Statement, texts: Sequence[str]) -> tuple[str, str]:
        """Return the declaration after `unused`, and a comment."""
        content = statement.content
        if isinstance(content, LayerCall):
            self.imports.setdefault(content.name)
            texts_by_axis = {slot.axis: text for slot, text in zip(content.slots, texts, strict=True)}
            return _format_call(content, texts_by_axis), _format_doubts(content, texts_by_axis)
        if isinstance(content, Block):
            arguments = [texts[index] for index in self._parameter_indices[content]]
            return self._names[content] + (f"({', '.join(arguments)})" if arguments else ""), ""
        type = f"{content.type} " if content.type else ""
        return f"{content.kind} {type}[{', '.join(texts)}]", content.remark


def _format_call(form: LayerCall, texts_by_axis: dict[tuple[str, int], str]) -> str:
    sizes = [texts_by_axis[slot.axis] for slot in form.slots]
    named = [f"{slot.name} = {texts_by_axis[slot.axis]}" for slot in form.slots[form.leading :]]
    return f"{form.name}({', '.join([*sizes[: form.leading], *named, *form.fixed])})"


def _format_doubts(form: LayerCall, texts_by_axis: dict[tuple[str, int], str]) -> str:
    """Return a comment with alternatives, and with hyperparameters that do not affect any shape."""
    doubts = [f"or {_format_call(alternative, texts_by_axis)}" for alternative in form.alternatives]
    if form.open:
        doubts.append(", ".join(form.open))
    return f"unknown: {'; '.join(doubts)}" if doubts else ""
