"""One spec for both values of a flag, from the specs of a module with it and without it.

The texts are compared node by node, and the smallest part that differs gets a condition. Whether the result is right is
for others to check, so that nothing here has to know what a part means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import product
from typing import NamedTuple

from archspec.core.diagnostics import Report, Source
from archspec.core.record import is_tuple
from archspec.language.syntax import tree
from archspec.language.syntax.edits import Edit, apply_edits, import_edit
from archspec.language.syntax.parse import parse, parse_expression


class UnmergeableError(Exception):
    """Two specs differ in a part that cannot have a condition."""


def merging_edits(text: str, other: str, condition: str, is_coarse: bool) -> list[Edit]:
    """Return edits of a spec after which it is the `other` one where the condition does not hold.

    With coarse ones, a definition that differs has the bodies of both. Raises UnmergeableError.
    """
    first, second = [_Part(source, parse(Source("<text>", source), Report())) for source in (text, other)]
    return [*_Merger(condition, is_coarse).files(first, second)]


def add_flag(text: str, flag: str, value: bool) -> str:
    """Return a spec in which the definitions that use a flag, or one that does, have it as a hyperparameter."""
    file = parse(Source("<text>", text), Report())
    model = next(item for item in file.items if isinstance(item, tree.Model))
    definitions = {item.name.text: item for item in file.items if isinstance(item, tree.Definition)}
    used = {name: {*tree.names_in(item)} for name, item in definitions.items()}  # pyright: ignore[reportArgumentType]
    needed = {name for name in used if flag in used[name]}
    while more := {name for name in used if needed & used[name]} - needed:
        needed |= more
    edits: list[Edit] = []
    for name in needed:
        item, entries = definitions[name], definitions[name].hyperparameters
        if not any(_base(entry) in needed for entry in entries):
            is_outer = name == model.callee.text or any(entry.default is not None for entry in entries)
            entry = f"{flag} = {str(value).lower()}" if is_outer else flag
            place = entries[-1].end if entries else item.name.end
            edits.append(Edit(place, place, f", {entry}" if entries else f"({entry})"))
        edits += _passing_edits(item, needed, flag)
    return apply_edits(text, edits)


def _passing_edits(item: tree.Definition, needed: Iterable[str], flag: str) -> Iterator[Edit]:
    """Yield the edits that pass a flag to the definitions that need it."""
    for node in tree.iter_nodes(item.body):
        if not isinstance(node, tree.Call | tree.ModuleDeclaration) or not isinstance(node.callee, tree.Name):
            continue
        items = node.lists[0].items if node.lists else ()
        if node.callee.text in needed and not any(argument.name == ".." for argument in items):
            place = items[-1].end if items else node.lists[0].end - 1 if node.lists else node.callee.end
            text = f"{', ' if items else ''}{flag} = {flag}"
            yield Edit(place, place, text if node.lists else f"({text})")


class _Part(NamedTuple):
    """A node of the syntax tree, and the text that it is in."""

    source: str
    node: tree.SyntaxNode

    @property
    def text(self) -> str:
        """Return the text of the node in one line."""
        return " ".join(self.source[self.node.start : self.node.end].split())

    def parts(self, nodes: Iterable[tree.SyntaxNode]) -> list[_Part]:
        """Return nodes of the same text."""
        return [_Part(self.source, node) for node in nodes]

    def edited(self, edits: Iterable[Edit]) -> str:
        """Return the text of the node after edits inside of it."""
        start, end = self.node.start, self.node.end
        moved = [Edit(edit.start - start, edit.end - start, edit.text) for edit in edits]
        return apply_edits(self.source[start:end], moved)

    @property
    def targets(self) -> list[str]:
        """Return the names that a statement assigns."""
        return [target.text for target in self.node.targets] if isinstance(self.node, tree.Assign) else []

    @property
    def value_key(self) -> str:
        """Return what the value of a statement begins with."""
        value = self.node.value if isinstance(self.node, tree.Assign) else None
        head = value.head if isinstance(value, tree.Chain) else value
        return _Part(self.source, head).key if head is not None else ""

    @property
    def key(self) -> str:
        """Return what a node has in common with its counterpart: its address, name or kind."""
        node = self.node
        match node:
            case tree.Assign():
                return f"= {', '.join([target.text for target in node.targets])}"
            case tree.Definition():
                return f"{node.kind} {node.name.text}"
            case tree.SignatureEntry():
                return f"{node.name} {_base(node)}"
            case tree.Tie():
                return f"tie {_Part(self.source, node.alias).text}"
            case tree.TensorDeclaration():
                return _Part(self.source, node.address).text
            case tree.ModuleDeclaration():
                return " ".join([part.text for part in self.parts([node.address, node.callee])])
            case tree.Call():
                return _Part(self.source, node.callee).text
            case tree.Step():
                value = _Part(self.source, node.value)
                return node.operator or (value.text if isinstance(node.value, tree.Name) else value.key)
            case tree.Role() | tree.Argument():
                return f"{type(node).__name__} {node.name}"
            case tree.Binary():
                return node.operator
            case _:
                return type(node).__name__


class _Merger:
    """Compares two specs, the first of which is right where a condition holds."""

    def __init__(self, condition: str, is_coarse: bool) -> None:
        self._holds, self._fails = condition, _opposite(condition)
        self._is_coarse = is_coarse

    def files(self, a: _Part, b: _Part) -> Iterator[Edit]:
        """Yield the edits of a file."""
        first, second = a.node, b.node
        assert isinstance(first, tree.File) and isinstance(second, tree.File)
        imports = _imports(first)
        for name in sorted({*_imports(second)} - {*imports}):
            place = next(iter(imports.values())).start if imports and name[0].isupper() else None
            yield import_edit(first, a.source, name) if place is None else Edit(place, place, f"{name}, ")
        mine, theirs = [part.parts(_definitions(part.node)) for part in (a, b)]
        place = mine[0].node.start
        for is_same, ours, others in _aligned(mine, theirs):
            if is_same:
                yield from self._definition(ours[0], others[0])
            elif others:
                texts = [part.edited(()) for part in others]
                yield Edit(place, place, "\n\n".join([*texts, ""] if place == mine[0].node.start else ["", *texts]))
            place = ours[-1].node.end if ours else place

    def _definition(self, a: _Part, b: _Part) -> Iterator[Edit]:
        first, second = a.node, b.node
        assert isinstance(first, tree.Definition) and isinstance(second, tree.Definition)
        if a.text == b.text:
            return
        yield from self._entries(a.parts(first.hyperparameters), b.parts(second.hyperparameters), first.name.end)
        yield from self._entries(a.parts(first.inputs), b.parts(second.inputs), first.name.end)
        yield from _required(self._values(a, b, first.outputs, second.outputs))
        if [part.text for part in a.parts(first.body)] != [part.text for part in b.parts(second.body)]:
            body = self._bodies if self._is_coarse else self._statements
            yield from body(a.parts(first.body), _renamed(b, a))

    def _entries(self, mine: Sequence[_Part], theirs: Sequence[_Part], place: int) -> Iterator[Edit]:
        """Yield the edits after which a signature has the entries of both; an input of one of them may be left out."""
        for is_same, ours, others in _aligned(mine, theirs):
            if is_same:
                yield from _required(self._children(ours[0], others[0]))
                place = ours[0].node.end
                continue
            for part in ours:
                place = part.node.end
                yield Edit(place, place, _unless_given(part))
            for part in others:
                if not mine and _unless_given(part):
                    raise UnmergeableError
                text = part.text + _unless_given(part)
                yield Edit(place, place, f", {text}" if mine else f"({text})")

    def _bodies(self, mine: Sequence[_Part], theirs: Sequence[_Part]) -> Iterator[Edit]:
        """Yield the edits after which two bodies are branches, from their first different statement on."""
        declared, others = [[part for part in side if _is_declared(part)] for side in (mine, theirs)]
        mine, theirs = [[part for part in side if not _is_declared(part)] for side in (mine, theirs)]
        while len(mine) > 1 < len(theirs) and mine[0].text == theirs[0].text:
            mine, theirs = mine[1:], theirs[1:]
        yield from self._statements(declared, others, mine[0].node.start)
        texts, names = list[str](), list[str]()
        for *items, last in (mine, theirs):
            if not isinstance(last.node, tree.Return):
                raise UnmergeableError
            values = last.parts(last.node.values)
            names = [f"result{turn or ''}" for turn in range(len(values))]
            results = [f"{name} = {value.edited(())}" for name, value in zip(names, values, strict=True)]
            texts.append("\n".join([*[item.edited(()) for item in items], *results]))
        if texts[0] != texts[1]:
            text = f"{self._branches(*texts)}\nreturn {', '.join(names)}"
            yield Edit(mine[0].node.start, mine[-1].node.end, text)

    def _statements(self, mine: Sequence[_Part], theirs: Sequence[_Part], place: int = 0) -> Iterator[Edit]:
        place, is_first = place or mine[0].node.start, True
        for is_same, ours, others in _aligned(mine, theirs):
            result = self._statement(ours[0], others[0]) if is_same else None
            if result is not None:
                yield from result
            elif ours:
                yield Edit(ours[0].node.start, ours[-1].node.end, self._text(ours, others))
            else:
                text = self._text([], others)
                yield Edit(place, place, f"{text}\n" if is_first else f"\n{text}")
            place, is_first = (ours[-1].node.end, False) if ours else (place, is_first)

    def _statement(self, a: _Part, b: _Part) -> list[Edit] | None:
        first, second = a.node, b.node
        if isinstance(first, tree.Role) and isinstance(second, tree.Role) and first.addresses:
            listed = {part.text for part in a.parts(first.addresses)}
            more = [part.text for part in b.parts(second.addresses) if part.text not in listed]
            return [Edit(first.end, first.end, f", {address}") for address in more]
        return self._children(a, b)

    def _text(self, ours: Sequence[_Part], others: Sequence[_Part]) -> str:
        """Return statements of which the first ones take effect where the condition holds, the others where not."""
        sides = [(self._holds, ours), (self._fails, others)]
        texts = [_declared(part, condition) for condition, side in sides for part in side if _is_declared(part)]
        sides = [(condition, [part for part in side if not _is_declared(part)]) for condition, side in sides]
        branches = [(condition, side) for condition, side in sides if side]
        if any(isinstance(part.node, tree.Return) for _, side in branches for part in side):
            raise UnmergeableError
        condition, parts = branches[0] if len(branches) == 1 else ("", [])
        single = parts[0].node if len(parts) == 1 else None
        if isinstance(single, tree.Assign) and len(single.targets) == 1:
            value = _operand(_Part(parts[0].source, single.value))
            return "\n".join([*texts, f"{single.targets[0].text} = {value} if {condition}"])
        blocks = ["\n".join([part.edited(()) for part in side]) for _, side in sides]
        if len(branches) == 2:
            texts.append(self._branches(*blocks))
        elif branches:
            texts.append(f"if {condition} {{\n{''.join(blocks)}\n}}")
        return "\n".join(texts)

    def _branches(self, first: str, second: str) -> str:
        """Return statements where the condition holds, and others where it does not."""
        if self._holds.startswith("not "):
            return f"if {self._fails} {{\n{second}\n}} else {{\n{first}\n}}"
        return f"if {self._holds} {{\n{first}\n}} else {{\n{second}\n}}"

    def _either(self, first: str, second: str) -> str:
        """Return a value where the condition holds, and another one where it does not."""
        if self._holds.startswith("not "):
            return f"{second} if {self._fails} else {first}"
        return f"{first} if {self._holds} else {second}"

    def _edits(self, a: _Part, b: _Part, is_operand: bool = True) -> list[Edit] | None:
        """Return the edits after which a node is also the other one; None if it cannot have a condition."""
        first, second = a.node, b.node
        if a.text == b.text:
            return []
        result = self._children(a, b) if _is_like(a, b) else None
        if result is None and not (isinstance(first, tree.Name) ^ isinstance(second, tree.Name)):
            result = self._chain(a, b)
            if result and is_operand and not isinstance(first, tree.Chain):
                result = [Edit(first.start, first.end, f"({a.edited(result)})")]
        if result is not None or not isinstance(first, tree.Expr) or not isinstance(second, tree.Expr):
            return result
        if {a.text, b.text} == {"true", "false"}:
            return [Edit(first.start, first.end, self._holds if a.text == "true" else self._fails)]
        text = self._either(_operand(a), _operand(b))
        return [Edit(first.start, first.end, f"({text})" if is_operand else text)]

    def _children(self, a: _Part, b: _Part) -> list[Edit] | None:
        if type(a.node) is not type(b.node) or isinstance(a.node, tree.Name):
            return None
        return _together([self._values(a, b, *pair) for pair in zip(a.node[2:], b.node[2:], strict=True)])

    def _values(self, a: _Part, b: _Part, ours: object, others: object) -> list[Edit] | None:
        """Return the edits for a field of two nodes."""
        if isinstance(ours, tree.Arguments) and isinstance(others, tree.Arguments):
            return self._arguments(_Part(a.source, ours), _Part(b.source, others))
        if isinstance(ours, tree.SyntaxNode) and isinstance(others, tree.SyntaxNode):
            is_operand = not isinstance(a.node, tree.Assign | tree.Return)
            return self._edits(_Part(a.source, ours), _Part(b.source, others), is_operand)
        if not is_tuple(ours) or not is_tuple(others):
            return [] if ours == others else None
        if len(ours) != len(others):
            return self._settings(a, b) if isinstance(a.node, tree.Call) else None
        return _together([self._values(a, b, *pair) for pair in zip(ours, others, strict=True)])

    def _arguments(self, a: _Part, b: _Part) -> list[Edit] | None:
        """Return the edits of a list of arguments, of which one may have more: other ones have their usual values."""
        first, second = a.node, b.node
        assert isinstance(first, tree.Arguments) and isinstance(second, tree.Arguments)
        result: list[list[Edit] | None] = []
        place = first.start + 1
        for is_same, ours, others in _aligned(a.parts(first.items), b.parts(second.items)):
            if is_same:
                result.append(self._argument(ours[0], others[0]))
                place = ours[0].node.end
                continue
            for part in ours:
                place = part.node.end
                result.append([Edit(part.node.start, place, _argument(part, self._holds))])
            texts = [_argument(part, self._fails) for part in others]
            texts = [f", {text}" for text in texts] if first.items else [", ".join(texts)]
            result += [[Edit(place, place, text)] for text in texts]
        return _together(result)

    def _settings(self, a: _Part, b: _Part) -> list[Edit] | None:
        """Return the edits of calls, of which only one has settings before its inputs."""
        first, second = a.node, b.node
        assert isinstance(first, tree.Call) and isinstance(second, tree.Call)
        inputs = self._arguments(*a.parts(first.lists[-1:]), *b.parts(second.lists[-1:]))
        ours, others = first.lists[:-1], second.lists[:-1]
        texts = [_argument(part, self._holds) for item in ours for part in a.parts(item.items)]
        texts += [_argument(part, self._fails) for item in others for part in b.parts(item.items)]
        start, end = (ours[0].start, ours[0].end) if ours else (first.callee.end, first.callee.end)
        return None if inputs is None else [*inputs, Edit(start, end, f"({', '.join(texts)})")]

    def _argument(self, a: _Part, b: _Part) -> list[Edit] | None:
        assert isinstance(a.node, tree.Argument) and isinstance(b.node, tree.Argument)
        if a.node.value is None or b.node.value is None:
            return [] if a.text == b.text else None
        return self._edits(*a.parts([a.node.value]), *b.parts([b.node.value]), is_operand=False)

    def _chain(self, a: _Part, b: _Part) -> list[Edit] | None:
        """Return the edits after which a chain, or what may be written as one, has the steps of both."""
        pairs = sorted(product(_chains(a), _chains(b)), key=lambda pair: len(pair[0]) + len(pair[1]))
        result = next(((mine, theirs) for mine, theirs in pairs if mine[0].key == theirs[0].key), None)
        if result is None or max(map(len, result)) == 1:
            return None
        (mine, *steps), (theirs, *others) = result
        head = self._edits(mine, theirs)
        own = next(_chains(a))[0]
        if head is None:
            return None
        expanded = [step for step in steps if step.source is not a.source]
        texts, edits, place = [mine.edited(head)], list[Edit](), own.node.end
        for is_same, ours, extra in _aligned(steps, others):
            changes = self._steps(ours, extra, is_same)
            if changes is None:
                return None
            *_, added = changes
            if expanded and (not ours or ours[0] in expanded):
                if any(step not in expanded for step in ours):
                    return None
                texts += [step.edited(inner) for step, inner in zip(ours, changes[0], strict=True)] + added
                expanded = [step for step in expanded if step not in ours]
                continue
            edits += [edit for inner in changes[0] for edit in inner]
            place = ours[-1].node.end if ours else place
            edits += [Edit(place, place, f"\n{text}") for text in added]
        first = [Edit(own.node.start, own.node.end, "\n".join(texts))] if len(texts) > 1 else head
        return [*first, *edits]

    def _steps(
        self, ours: Sequence[_Part], others: Sequence[_Part], is_same: bool
    ) -> tuple[list[list[Edit]], list[str]] | None:
        """Return the edits of steps, and the texts of those after them that only the other chain has."""
        result = self._children(ours[0], others[0]) if is_same else None
        if result is not None:
            return [result], []
        steps = [part.node for part in (*ours, *others)]
        if any(not isinstance(step, tree.Step) or step.condition or step.loop for step in steps):
            return None
        operators = {step.operator for step in steps if isinstance(step, tree.Step)}
        if len(ours) == len(others) == 1 and operators == {""}:
            step = ours[0].node
            text = self._either(*[part.text.removeprefix("|> ") for part in (*ours, *others)])
            return [[Edit(step.start, step.end, f"|> {text}")]], []
        conditional = [[Edit(part.node.end, part.node.end, f" if {self._holds}")] for part in ours]
        return conditional, [f"{part.text} if {self._fails}" for part in others]


def _aligned(mine: Sequence[_Part], theirs: Sequence[_Part]) -> Iterator[tuple[bool, list[_Part], list[_Part]]]:
    """Yield single nodes that correspond to each other, and the ones between them that do not."""
    matcher = SequenceMatcher(None, [part.key for part in mine], [part.key for part in theirs], autojunk=False)
    for tag, first, last, start, end in matcher.get_opcodes():
        ours, others = [*mine[first:last]], [*theirs[start:end]]
        if tag == "equal":
            yield from [(True, [one], [other]) for one, other in zip(ours, others, strict=True)]
        else:
            yield False, ours, others


def _chains(part: _Part) -> Iterator[list[_Part]]:
    """Yield a value as a chain: as it is written, and with calls at its head as further steps."""
    head, steps = part, list[_Part]()
    if isinstance(part.node, tree.Chain):
        head, steps = _Part(part.source, part.node.head), part.parts(part.node.steps)
    while True:
        yield [head, *steps]
        node = head.node
        if not isinstance(node, tree.Call | tree.ModuleDeclaration) or not node.lists:
            return
        arguments = node.lists[-1]
        inner = arguments.items[0].value if arguments.items and not arguments.items[0].name else None
        if inner is None:
            return
        alone = len(arguments.items) == 1
        edit = Edit(arguments.start, arguments.end, "") if alone else Edit(inner.start, inner.end, "_")
        text = f"_ |> {head.edited([edit])}"
        chain = parse_expression(Source("<text>", text), Report())
        if not isinstance(chain, tree.Chain):
            return
        head, steps = _Part(part.source, inner), [*_Part(text, chain).parts(chain.steps), *steps]


def _renamed(part: _Part, other: _Part) -> list[_Part]:
    """Return the statements of a definition with the names of another one's values."""
    first, second = part.node, other.node
    assert isinstance(first, tree.Definition) and isinstance(second, tree.Definition)
    wanted: dict[str, list[str]] = {}
    for each in other.parts(second.body):
        wanted[each.value_key] = [] if each.value_key in wanted else each.targets  # of several, it is not known which
    pairs = [(each.targets, wanted.get(each.value_key, [])) for each in part.parts(first.body)]
    names = {old: new for olds, news in pairs if len(olds) == len(news) for old, new in zip(olds, news, strict=True)}
    used = {*tree.assigned_names(first.body), *tree.names_in(first)}  # pyright: ignore[reportArgumentType]
    for name in (used & {*names.values()}) - {*names}:
        names[name] = next(free for turn in range(2, 99) if (free := f"{name}{turn}") not in used)
    nodes = [node for node in tree.iter_nodes(first.body) if isinstance(node, tree.Name) and node.text in names]
    text = apply_edits(part.source, [Edit(node.start, node.end, names[node.text]) for node in nodes])
    renamed = _definitions(parse(Source("<text>", text), Report()))
    return next(_Part(text, item).parts(item.body) for item in renamed if item.name.text == first.name.text)


def _is_like(a: _Part, b: _Part) -> bool:
    """Whether two expressions are of the same parts: of the same steps, if they are chains."""
    if isinstance(a.node, tree.Chain) and isinstance(b.node, tree.Chain):
        first, second = [[part.key for part in each.parts([each.node.head, *each.node.steps])] for each in (a, b)]  # pyright: ignore
        return first == second
    return a.key == b.key


def _together(result: Sequence[list[Edit] | None]) -> list[Edit] | None:
    edits = [edit for each in result if each is not None for edit in each]
    return None if None in result else edits


def _required(edits: list[Edit] | None) -> list[Edit]:
    if edits is None:
        raise UnmergeableError
    return edits


def _opposite(condition: str) -> str:
    return condition.removeprefix("not ") if condition.startswith("not ") else f"not {condition}"


def _base(entry: tree.SignatureEntry) -> str:
    """Return the definition whose hyperparameters or inputs an entry stands for."""
    return entry.default.text if entry.name == ".." and isinstance(entry.default, tree.Name) else ""


def _unless_given(part: _Part) -> str:
    """Return what allows an input to be left out."""
    assert isinstance(part.node, tree.SignatureEntry)
    return " = none" if part.node.shape is not None and part.node.default is None else ""


def _imports(file: tree.File) -> dict[str, tree.ImportedName]:
    return {entry.name: entry for item in file.items if isinstance(item, tree.Import) for entry in item.names}


def _definitions(file: tree.SyntaxNode) -> list[tree.Definition]:
    assert isinstance(file, tree.File)
    return [item for item in file.items if isinstance(item, tree.Definition)]


def _is_declared(part: _Part) -> bool:
    return isinstance(part.node, tree.TensorDeclaration | tree.Tie | tree.Declare | tree.Role | tree.Label)


def _declared(part: _Part, condition: str) -> str:
    """Return a declaration that takes effect under a condition; roles may be of what is not there."""
    if not isinstance(part.node, tree.TensorDeclaration | tree.Tie | tree.Declare):
        return part.text
    if part.node.condition is not None or part.node.loop is not None:
        raise UnmergeableError
    return f"{part.text} if {condition}"


def _operand(part: _Part) -> str:
    """Return the text of an expression as an operand of a condition."""
    is_simple = isinstance(part.node, tree.Name | tree.Literal | tree.Call | tree.Binary | tree.ListLiteral)
    return part.text if is_simple else f"({part.text})"


def _argument(part: _Part, condition: str) -> str:
    """Return an argument that has its usual value unless a condition holds."""
    assert isinstance(part.node, tree.Argument)
    if part.node.value is None:
        raise UnmergeableError
    value = _Part(part.source, part.node.value)
    conditions = {"true": condition, "false": _opposite(condition)}
    text = conditions.get(value.text) or f"{_operand(value)} if {condition}"
    return f"{part.node.name} = {text}" if part.node.name else text
