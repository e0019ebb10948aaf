"""Construction of the nodes of addresses and expressions; `build.py` constructs the others."""

from __future__ import annotations

import re
from typing import TypeVar

from archspec.core.record import from_values, is_tuple
from archspec.language.syntax import tree
from archspec.language.syntax.machine import ArchSyntaxError, Children, NodeMaker, Token
from archspec.language.syntax.tree import Expr, ListLiteral, Name, SyntaxNode

MAX_DEPTH = 100
"""The maximum nesting of operators in an expression."""

MAX_INTEGER_LENGTH = 18

N = TypeVar("N", bound=SyntaxNode)
T = TypeVar("T")

# Helpers --------------------------------------------------------------------------------------------------------------


def nodes(children: list[T]) -> tuple[T, ...]:
    return tuple([c for c in children if not isinstance(c, Token)])


def words(children: Children) -> tuple[Token, ...]:
    return tuple([c for c in children if isinstance(c, Token) and c.text != ","])


def end_of(children: Children) -> int:
    """Return the end of the last child that is not None."""
    return next(c.end for c in reversed(children) if c is not None)


def name_of(token: Token) -> Name:
    return from_values(Name, (token.start, token.end, token.text))


def text_of(token: Token) -> str:
    return re.sub(r"\\(.)", r"\1", token.text[1:-1])


_NESTING_NODES = (
    tree.Binary,
    tree.Unary,
    tree.Conditional,
    tree.Subscript,
    tree.Call,
    tree.ModuleDeclaration,
    tree.Chain,
    ListLiteral,
)


def check_depth(node: N) -> N:
    """Return `node`. Raises ArchSyntaxError if it is nested too deeply for the recursive passes that follow."""
    if node.end - node.start <= MAX_DEPTH:  # every level takes at least one character
        return node
    pending: list[tuple[tuple[object, ...], int]] = [(node, 0)]
    while pending:
        part, depth = pending.pop()
        if depth > MAX_DEPTH and isinstance(part, _NESTING_NODES):
            message = f"expression is nested too deeply: the limit is {MAX_DEPTH} levels"
            raise ArchSyntaxError(message, part.start, part.end, "assign parts of it to names", "budget")
        pending += [(child, depth + isinstance(child, _NESTING_NODES)) for child in part if is_tuple(child)]
    return node


# Addresses ------------------------------------------------------------------------------------------------------------

INVALID_SEGMENT = re.compile(r"[.\[\]{}\s\"\\@#:*]|[^ -~]")  # `@ # : *` are reserved in the names of graph nodes
INDEX_IN_WORD = re.compile(r"\{([A-Za-z_]\w*)\}", re.ASCII)
_ADJACENT_INDICES = re.compile(r"\}[0-9]*\{")  # different numbers could make the same word


def place(children: Children) -> Expr:
    """Return a name or a string, which may become an address."""
    token = children[0]
    return tree.Literal(token.start, token.end, text_of(token)) if token.kind == "STRING" else name_of(token)


def address(children: Children) -> tree.Address:
    child = children[0]
    return child if isinstance(child, tree.Address) else _address(child, ())


def dotted(children: Children) -> tree.Address:
    return _address(children[0], nodes(children[1:]))


def _address(node: Expr, suffix: tuple[tree.Segment, ...]) -> tree.Address:
    numbers: list[tree.Segment] = []
    base = node
    while isinstance(base, tree.Subscript):
        numbers.append(tree.Segment(base.value.end, base.end, "", base.position, ()))
        base = base.value
    text = base.text if isinstance(base, Name) else base.value if isinstance(base, tree.Literal) else ""
    first = _segment(base.start, base.end, str(text))
    segments = (first, *reversed(numbers), *suffix)
    return tree.Address(node.start, segments[-1].end, segments)


def segment(children: Children) -> tree.Segment:
    token = children[0]
    return _segment(token.start, token.end, text_of(token) if token.kind == "STRING" else token.text)


def _segment(start: int, end: int, text: str) -> tree.Segment:
    if not text or INVALID_SEGMENT.search(INDEX_IN_WORD.sub("", text)) or _ADJACENT_INDICES.search(text):
        message = f"invalid address segment `{text}`" if text else "empty address segment"
        help = 'quote each segment separately: `"in".weight`' if "." in text else None
        if "{" in text:
            help = 'write a name in braces, as in `"bucket_{i}"`; separate two of them by more than digits'
        raise ArchSyntaxError(message, start, end, help)
    quote = 1  # a segment with braces is quoted, without escapes
    names = [
        Name(start + quote + match.start(1), start + quote + match.end(1), match[1])
        for match in INDEX_IN_WORD.finditer(text)
    ]
    return tree.Segment(start, end, text, None, tuple(names))


def index(children: Children) -> tree.Segment:
    start, value, end = children
    return tree.Segment(start.start, end.end, "", value, ())


# Declarations and calls -----------------------------------------------------------------------------------------------


def own(children: Children) -> tree.ModuleDeclaration:
    address, _, modifiers, callee, *lists = children
    return tree.ModuleDeclaration(address.start, children[-1].end, address, modifiers, callee, tuple(lists))


def here(children: Children) -> tree.Address:
    return tree.Address(children[0].start, children[0].end, ())


def modifiers(children: Children) -> tuple[str, ...]:
    words = tuple(token.text for token in children)
    if len(set(words)) < len(words):
        raise ArchSyntaxError(f"`{words[-1]}` is specified more than once", children[-1].start, children[-1].end)
    return words


def callee(children: Children) -> Name:
    return name_of(children[0])


def arguments(children: Children) -> tree.Arguments:
    return tree.Arguments(children[0].start, children[-1].end, nodes(children))


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
    return tree.Step(arrow.start, end_of(children), sign.text, value, condition, None, loop)


def skip(children: Children) -> tuple[Expr | None, Expr | None]:
    return children[1] if children else None, children[3] if len(children) > 2 else None


def conditional(children: Children) -> tree.Conditional:
    value, _, condition, *otherwise = children
    return tree.Conditional(value.start, children[-1].end, value, condition, otherwise[-1] if otherwise else None)


def binary(children: Children) -> tree.Binary:
    left, sign, right = children
    return tree.Binary(left.start, right.end, sign.text, left, right)


def excluded(children: Children) -> tree.Binary:
    left, _, _, right = children
    return tree.Binary(left.start, right.end, "not in", left, right)


def unary(children: Children) -> tree.Unary:
    sign, operand = children
    return tree.Unary(sign.start, operand.end, sign.text, operand)


def paren(children: Children) -> Expr:
    start, inner, end = children
    return inner.replace(start=start.start, end=end.end)


def subscript(children: Children) -> tree.Subscript:
    value, position = children
    return tree.Subscript(value.start, position.end, value, position.number)


def reference(children: Children) -> tree.AddressReference:
    dot, first, last = children[0], children[1], children[-1]
    if first.text[:1].isdigit() and first.end - first.start == len(first.text):
        help = f'write `0.{first.text}`, or `."{first.text}"` for an address'
        raise ArchSyntaxError("expected a digit before the decimal point", dot.start, first.end, help)
    return tree.AddressReference(dot.start, last.end, tree.Address(first.start, last.end, nodes(children)))


def listing(children: Children) -> ListLiteral:
    return ListLiteral(children[0].start, children[-1].end, nodes(children))


def ellipsis(children: Children) -> tree.LeadingDimensions:
    return tree.LeadingDimensions(children[0].start, children[0].end)


_CONSTANTS = {"true": True, "false": False, "none": None, "inf": float("inf")}


def literal(children: Children) -> tree.Literal:
    token = children[0]
    value = _CONSTANTS.get(token.text)
    if token.kind == "INT":
        digits = token.text.replace("_", "")
        if len(digits) > MAX_INTEGER_LENGTH:
            message = f"integer too long: the limit is {MAX_INTEGER_LENGTH} digits"
            raise ArchSyntaxError(message, token.start, token.end, code="budget")
        value = int(digits)
    elif token.kind == "REAL":
        value = float(token.text)
        if value in (float("inf"), 0.0) and set(re.split("[eE]", token.text)[0]) - set("0._"):
            size = "large" if value else "small"
            raise ArchSyntaxError(f"number too {size} to represent", token.start, token.end, code="budget")
    return tree.Literal(token.start, token.end, value)


EXPRESSIONS: dict[str, NodeMaker] = {
    rule.__name__: rule
    for rule in (
        *(place, address, dotted, segment, index, own, here, modifiers, callee, arguments, argument, call),
        *(chain, step, operate, skip, conditional, binary, excluded, unary, paren, subscript, reference),
        *(listing, ellipsis, literal),
    )
}
"""The function that constructs the node of each rule."""
