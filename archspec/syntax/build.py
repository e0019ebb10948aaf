"""Makes the nodes of the tree, bottom-up: one function for each rule of the grammar, given all that the rule matched.

What the grammar cannot say is checked here, and raised as a Fault.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from archspec.syntax import tree
from archspec.syntax.machine import Fault, Make, Token
from archspec.syntax.tree import Expr, Listing, Name, Parameter

DEEPEST = 100
"""How many levels of operators an expression may have, and how many `else if` may follow an `if`."""

LONGEST_INTEGER = 18

Children = list[Any]


class _Block(NamedTuple):
    """`{ items }`."""

    start: int
    end: int
    items: tuple[Any, ...]


# Helpers --------------------------------------------------------------------------------------------------------------


def _nodes(children: Children) -> tuple[Any, ...]:
    return tuple(c for c in children if not isinstance(c, Token))


def _tokens(children: Children, kind: str = "NAME") -> tuple[Token, ...]:
    return tuple(c for c in children if isinstance(c, Token) and c.text != ",")


def _end(children: Children) -> int:
    return next(c.end for c in reversed(children) if c is not None)


def _name(token: Token) -> Name:
    return Name(token.start, token.end, token.text)


def _string(token: Token) -> str:
    return re.sub(r"\\(.)", r"\1", token.text[1:-1])


def _optional(children: Children) -> Any:
    """The last thing an optional part matched, or None."""
    return children[-1] if children else None


def _block(children: Children) -> _Block:
    return _Block(children[0].start, children[-1].end, _nodes(children))


_LEVELS = (tree.Binary, tree.Unary, tree.Conditional, tree.Subscript, tree.Call, tree.Own, tree.Chain, Listing)


def _shallow(node: Any) -> Any:
    """`node`, if no expression in it is too deep to be walked by recursion later."""
    if node.end - node.start <= DEEPEST:  # every level takes a character at least
        return node
    pending: list[tuple[Any, int]] = [(node, 0)]
    while pending:
        found, depth = pending.pop()
        if depth > DEEPEST:
            message = f"this expression is more than {DEEPEST} levels deep"
            raise Fault(message, found.start, found.end, "give parts of it names of their own", "budget")
        for child in found:
            if isinstance(child, tuple) and child:
                pending.append((child, depth + isinstance(child, _LEVELS)))
    return node


# Files ----------------------------------------------------------------------------------------------------------------


def file(children: Children) -> tree.File:
    return tree.File(0, _end(children) if children else 0, _nodes(children), (), ())


def imports(children: Children) -> tree.Import:
    word, source = children[:2]
    path = source.kind == "STRING"
    text = _string(source) if path else source.text
    return tree.Import(word.start, children[-1].end, word.text == "export", text, path, _nodes(children))


def imported(children: Children) -> tree.Imported:
    name, alias = children[0], children[-1]
    return tree.Imported(name.start, alias.end, name.text, alias.text)


def dims(children: Children) -> tree.Dims:
    return tree.Dims(children[0].start, children[-1].end, tuple(_name(t) for t in _tokens(children[1:])))


def model(children: Children) -> tree.Model:
    word, title, _, callee, *arguments, expects = children
    name = tree.Literal(title.start, title.end, _string(title))
    items = expects.items if expects else ()
    return tree.Model(word.start, _end(children), name, _name(callee), _optional(arguments), items, "")


def expects(children: Children) -> _Block | None:
    return _block(children) if children else None


def expect(children: Children) -> tree.Expect:
    word, condition = children
    return _shallow(tree.Expect(word.start, condition.end, condition))


# Heads ----------------------------------------------------------------------------------------------------------------


def definition(children: Children) -> tree.Definition:
    word, name, *lists, _, outputs, body = children
    entries: list[tuple[Parameter, ...]] = [_nodes(given) for given in lists]
    if len(entries) == 1:
        is_inputs = any(entry.shape for entry in entries[0])
        hyperparameters, inputs = ((), entries[0]) if is_inputs else (entries[0], ())
    else:
        hyperparameters, inputs = entries
    for entry in hyperparameters:
        _check_hyperparameter(entry, len(entries) == 1)
    for entry in inputs:
        _check_input(entry, len(entries) == 1)
    return tree.Definition(
        word.start, body.end, word.text, _name(name), hyperparameters, inputs, outputs, body.items, ""
    )


def _check_hyperparameter(entry: Parameter, alone: bool) -> None:
    if entry.shape is not None:
        message = f"`{entry.name}` has a shape, but stands among the hyperparameters"
        help = "hyperparameters come first, in a list of their own: `(hidden, heads)(x [batch, hidden])`"
        raise Fault(message, entry.start, entry.end, help)
    if entry.type:
        message = f"`{entry.name}` has a type but no shape"
        help = f"an input has both: `{entry.name} {entry.type} [batch]`; a hyperparameter neither"
        raise Fault(message, entry.start, entry.end, help)


def _check_input(entry: Parameter, alone: bool) -> None:
    if entry.name == "..":
        raise Fault("`..` stands among the inputs", entry.start, entry.end, "it takes over hyperparameters, in the first list")
    if entry.shape is None:
        message = f"the input `{entry.name}` has no shape"
        help = f"write `{entry.name} [batch, hidden]`"
        if alone:
            help += "; hyperparameters come first, in a list of their own"
        raise Fault(message, entry.start, entry.end, help)
    default = entry.default
    if default is not None and not (isinstance(default, tree.Literal) and default.value is None):
        raise Fault("the default of an input can only be `none`", default.start, default.end)


def entry(children: Children) -> Parameter:
    name, type, shape, default = children
    return _shallow(Parameter(name.start, _end(children), name.text, _dtype(type), shape, default))


def takeover(children: Children) -> Parameter:
    dots, name = children
    return Parameter(dots.start, name.end, "..", "", None, _name(name))


def _dtype(token: Token | None) -> str:
    if token is None:
        return ""
    if token.text not in ("int", "bool"):
        help = "leave it out: real numbers are meant where nothing is said" if token.text in _REALS else None
        raise Fault(f"`{token.text}` is no element type; there are `int` and `bool`", token.start, token.end, help)
    return token.text


_REALS = ("real", "float", "float32", "float16", "bfloat16", "half", "double", "Tensor")


def output(children: Children) -> tree.Output:
    *words, shape = children
    type = _dtype(words.pop()) if len(words) == 2 or (words and words[0].text in ("int", "bool")) else ""
    name = words[0].text if words else ""
    return tree.Output(children[0].start, shape.end, name, type, shape)


# Statements -----------------------------------------------------------------------------------------------------------


def bind(children: Children) -> tree.Bind:
    *targets, _, value = children
    names = tuple(_name(t) for t in _tokens(targets))
    return _shallow(tree.Bind(names[0].start, value.end, names, value))


def declare(children: Children) -> tree.Declare:
    value, *loop = children
    end = _end(children)
    start = value.start
    condition = None
    if isinstance(value, tree.Conditional) and value.otherwise is None:
        value, condition = value.value, value.condition
    return _shallow(tree.Declare(start, end, value, condition, _optional(loop)))


def param(children: Children) -> tree.Param:
    address, _, modifiers, kind, type, shape, start, condition, loop = children
    value, initial = (None, start) if isinstance(start, tree.Initial) else (start, None)
    node = tree.Param(
        address.start, _end(children), address, modifiers, kind.text, _dtype(type), shape, value, initial, condition, loop
    )
    return _shallow(node)


def initial(children: Children) -> Any:
    if not children:
        return None
    sign, first, *_ = children
    if sign.text == "=":
        return first
    return tree.Initial(sign.start, children[-1].end, first.text, _nodes(children))


def tie(children: Children) -> tree.Tie:
    word, alias, _, counted, condition, loop = children
    return _shallow(tree.Tie(word.start, _end(children), alias, counted, condition, loop))


def require(children: Children) -> tree.Require:
    word, condition, *message = children
    return _shallow(tree.Require(word.start, children[-1].end, condition, _string(message[1]) if message else None))


def role(children: Children) -> tree.Role:
    return tree.Role(children[0].start, children[-1].end, children[1].text, _nodes(children))


def result(children: Children) -> tree.Return:
    return _shallow(tree.Return(children[0].start, children[-1].end, _nodes(children)))


def branch(children: Children) -> tree.If:
    word, condition, body, *rest = children
    otherwise: tuple[tree.Statement, ...] = ()
    if rest:
        otherwise = rest[1].items if isinstance(rest[1], _Block) else (rest[1],)
    node = tree.If(word.start, children[-1].end, _shallow(condition), body.items, otherwise)
    links, link = 0, node
    while len(link.otherwise) == 1 and isinstance(link.otherwise[0], tree.If):
        links, link = links + 1, link.otherwise[0]
    if links > DEEPEST:
        raise Fault(f"more than {DEEPEST} `else if` in a row", node.start, node.start + 2, code="budget")
    return node


def repeat(children: Children) -> tree.For:
    loop, body = children
    return tree.For(loop.start, body.end, _shallow(loop), body.items)


def loop(children: Children) -> tree.Loop:
    word, index, _, first, _, last = children
    return tree.Loop(word.start, last.end, index.text, first, last)


def modifiers(children: Children) -> tuple[str, ...]:
    words = tuple(token.text for token in children)
    if len(set(words)) < len(words):
        raise Fault(f"`{words[-1]}` is said twice", children[-1].start, children[-1].end)
    return words


# Addresses ------------------------------------------------------------------------------------------------------------

_UNFIT = re.compile(r"[.\[\]\s\"\\]|[^ -~]")


def place(children: Children) -> Expr:
    """A name or a string, until `address` finds that an address begins with it."""
    token = children[0]
    return tree.Literal(token.start, token.end, _string(token)) if token.kind == "STRING" else _name(token)


def address(children: Children) -> tree.Address:
    found = children[0]
    return found if isinstance(found, tree.Address) else _address(found, ())


def dotted(children: Children) -> tree.Address:
    return _address(children[0], _nodes(children[1:]))


def _address(place: Expr, rest: tuple[tree.Segment, ...]) -> tree.Address:
    indices: list[tree.Segment] = []
    found = place
    while isinstance(found, tree.Subscript):
        indices.append(tree.Segment(found.value.end, found.end, "", found.position))
        found = found.value
    first = _segment(found.start, found.end, found.text if isinstance(found, Name) else found[2])
    segments = (first, *reversed(indices), *rest)
    return tree.Address(place.start, segments[-1].end, segments)


def segment(children: Children) -> tree.Segment:
    token = children[0]
    return _segment(token.start, token.end, _string(token) if token.kind == "STRING" else token.text)


def _segment(start: int, end: int, text: str) -> tree.Segment:
    if not text or _UNFIT.search(text):
        what = "an empty segment" if not text else f"`{text}`"
        help = "one segment a pair of quotes: `\"in\".weight`" if "." in text else None
        raise Fault(f"{what} cannot be one part of an address", start, end, help)
    return tree.Segment(start, end, text, None)


def index(children: Children) -> tree.Segment:
    start, value, end = children
    return tree.Segment(start.start, end.end, "", value)


# Owning and calling ---------------------------------------------------------------------------------------------------


def own(children: Children) -> tree.Own:
    address, _, modifiers, callee, *lists = children
    return tree.Own(address.start, children[-1].end, address, modifiers, callee, tuple(lists))


def callee(children: Children) -> Name:
    return _name(children[0])


def arguments(children: Children) -> tree.Arguments:
    return tree.Arguments(children[0].start, children[-1].end, _nodes(children))


def argument(children: Children) -> tree.Argument:
    first, last = children[0], children[-1]
    if isinstance(last, Token):
        return tree.Argument(first.start, last.end, "..", None)
    return tree.Argument(first.start, last.end, first.text if len(children) == 3 else "", last)


def call(children: Children) -> tree.Call:
    callee, *lists = children
    return tree.Call(callee.start, lists[-1].end, callee, tuple(lists))


# Expressions ----------------------------------------------------------------------------------------------------------


def chain(children: Children) -> tree.Chain:
    head, *steps = children
    return tree.Chain(head.start, steps[-1].end, head, tuple(steps))


def step(children: Children) -> tree.Step:
    arrow, value, (condition, otherwise), loop = children
    return tree.Step(arrow.start, (loop or otherwise or condition or value).end, "", value, condition, otherwise, loop)


def operate(children: Children) -> tree.Step:
    arrow, sign, value, condition, loop = children
    return tree.Step(arrow.start, _end(children), sign.text, value, condition, None, loop)


def skip(children: Children) -> tuple[Expr | None, Expr | None]:
    return children[1] if children else None, children[3] if len(children) > 2 else None


def conditional(children: Children) -> tree.Conditional:
    value, _, condition, *otherwise = children
    return tree.Conditional(value.start, children[-1].end, value, condition, _optional(otherwise))


def binary(children: Children) -> tree.Binary:
    left, sign, right = children
    return tree.Binary(left.start, right.end, sign.text, left, right)


def unary(children: Children) -> tree.Unary:
    sign, operand = children
    return tree.Unary(sign.start, operand.end, sign.text, operand)


def paren(children: Children) -> Expr:
    start, inner, end = children
    return inner._replace(start=start.start, end=end.end)


def subscript(children: Children) -> tree.Subscript:
    value, index = children
    return tree.Subscript(value.start, index.end, value, index.number)


def reference(children: Children) -> tree.Reference:
    dot, *segments = _nodes_after_dot(children)
    return tree.Reference(dot.start, segments[-1].end, tree.Address(segments[0].start, segments[-1].end, tuple(segments)))


def _nodes_after_dot(children: Children) -> tuple[Any, ...]:
    first = children[1]
    if first.text[:1].isdigit() and first.end - first.start == len(first.text):
        help = f"write `0.{first.text}`, or `.\"{first.text}\"` for an address"
        raise Fault("a number needs a digit before its point", children[0].start, first.end, help)
    return (children[0], *_nodes(children))


def listing(children: Children) -> Listing:
    return Listing(children[0].start, children[-1].end, _nodes(children))


def ellipsis(children: Children) -> tree.Ellipsis_:
    return tree.Ellipsis_(children[0].start, children[0].end)


_WORDS = {"true": True, "false": False, "none": None, "inf": float("inf")}


def literal(children: Children) -> tree.Literal:
    token = children[0]
    value = _WORDS.get(token.text)
    if token.kind == "INT":
        digits = token.text.replace("_", "")
        if len(digits) > LONGEST_INTEGER:
            message = f"this integer has more than {LONGEST_INTEGER} digits"
            raise Fault(message, token.start, token.end, code="budget")
        value = int(digits)
    elif token.kind == "REAL":
        value = float(token.text)
        if value in (float("inf"), 0.0) and set(re.split("[eE]", token.text)[0]) - set("0._"):
            size = "large" if value else "small"
            raise Fault(f"this number is too {size} to be represented", token.start, token.end, code="budget")
    return tree.Literal(token.start, token.end, value)


MAKERS: dict[str, Make] = {
    **{
        rule.__name__: rule
        for rule in (
            *(file, imports, imported, dims, model, expects, expect, definition, entry, takeover, output),
            *(bind, declare, param, initial, tie, require, role, result, branch, repeat, loop),
            *(place, address, dotted, segment, index, own, modifiers, callee, arguments, argument, call),
            *(chain, step, operate, skip, conditional, binary, unary, paren, subscript, reference),
            *(listing, ellipsis, literal),
        )
    },
    **dict.fromkeys(("shape", "dtype", "default", "repeated", "condition"), _optional),
    **dict.fromkeys(("entries", "outputs"), _nodes),
    "body": _block,
}
"""The function that makes each rule's node."""
