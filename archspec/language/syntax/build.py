"""Construction of the nodes of files, definitions and statements, with checks that the grammar cannot express.

There is one function per grammar rule. It takes the children of the rule, and raises ArchSyntaxError for an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from archspec.core.record import Record
from archspec.language.syntax import tree
from archspec.language.syntax.expressions import EXPRESSIONS, check_depth, end_of, name_of, nodes, text_of, words
from archspec.language.syntax.machine import ArchSyntaxError, Children, NodeMaker, Token
from archspec.language.syntax.tree import SignatureEntry

MAX_BRANCH_LENGTH = 100
"""The maximum number of `else if` branches."""

T = TypeVar("T")


class _Block(Record):
    """`{ items }`."""

    start: int
    end: int
    items: tuple[Any, ...]


def _block(children: Children) -> _Block:
    return _Block(children[0].start, children[-1].end, nodes(children))


def _optional(children: list[T]) -> T | None:
    """Return the last child of an optional rule; None if it has no children."""
    return children[-1] if children else None


# Files ----------------------------------------------------------------------------------------------------------------


def file(children: Children) -> tree.File:
    return tree.File(0, end_of(children) if children else 0, nodes(children), (), ())


def imports(children: Children) -> tree.Import:
    word, source = children[:2]
    path = source.kind == "STRING"
    text = text_of(source) if path else source.text
    return tree.Import(word.start, children[-1].end, word.text == "export", text, path, nodes(children))


def imported(children: Children) -> tree.ImportedName:
    name, alias = children[0], children[-1]
    return tree.ImportedName(name.start, alias.end, name.text, alias.text)


def dims(children: Children) -> tree.DimensionDeclaration:
    return tree.DimensionDeclaration(
        children[0].start, children[-1].end, tuple(name_of(t) for t in words(children[1:]))
    )


def model(children: Children) -> tree.Model:
    word, title, _, callee, *arguments, expects = children
    name = tree.Literal(title.start, title.end, text_of(title))
    items = expects.items if expects else ()
    return check_depth(tree.Model(word.start, end_of(children), name, name_of(callee), _optional(arguments), items, ""))


def expects(children: Children) -> _Block | None:
    return _block(children) if children else None


def expect(children: Children) -> tree.Expect:
    word, condition = children
    return check_depth(tree.Expect(word.start, condition.end, condition))


# Signatures -----------------------------------------------------------------------------------------------------------


def definition(children: Children) -> tree.Definition:
    word, name, *lists, outputs, body = children
    entries: list[tuple[SignatureEntry, ...]] = [nodes(entry_list) for entry_list in lists]
    if len(entries) == 1:
        is_inputs = any(entry.shape for entry in entries[0])
        hyperparameters, inputs = ((), entries[0]) if is_inputs else (entries[0], ())
    else:
        hyperparameters, inputs = entries
    for entry in hyperparameters:
        _check_hyperparameter(entry)
    if not outputs and (inputs or len(lists) > 1 or word.text != "fn"):
        help = "declare the outputs: `-> [batch, hidden]`"
        raise ArchSyntaxError("expected `->` after `)`, found `{`", body.start, body.start + 1, help)
    for entry in inputs:
        _check_input(entry, len(entries) == 1)
    return tree.Definition(
        word.start, body.end, word.text, name_of(name), hyperparameters, inputs, outputs, body.items, ""
    )


def _check_hyperparameter(entry: SignatureEntry) -> None:
    if entry.shape is not None:
        message = f"hyperparameter `{entry.name}` cannot have a shape"
        help = "put inputs in a second list: `(hidden, heads)(x [batch, hidden])`"
        raise ArchSyntaxError(message, entry.start, entry.end, help)
    if entry.type:
        message = f"`{entry.name}` has a type but no shape"
        help = f"write `{entry.name} {entry.type} [batch]` for an input, or `{entry.name}` for a hyperparameter"
        raise ArchSyntaxError(message, entry.start, entry.end, help)


def _check_input(entry: SignatureEntry, is_only_list: bool) -> None:
    if entry.name == "..":
        return
    if entry.shape is None:
        message = f"input `{entry.name}` has no shape"
        help = f"write `{entry.name} [batch, hidden]`"
        if is_only_list:
            help += "; put hyperparameters in a separate list before the inputs"
        raise ArchSyntaxError(message, entry.start, entry.end, help)
    default = entry.default
    if default is not None and not (isinstance(default, tree.Literal) and default.value is None):
        help = "write `= none`, or make it a hyperparameter"
        raise ArchSyntaxError("the default of an input must be `none`", default.start, default.end, help)


def entry(children: Children) -> SignatureEntry:
    name, type, shape, default = children
    if type is not None and shape is None and type.text not in _ELEMENT_TYPES:
        message = f"expected `,` or `)` after `{name.text}`, found `{type.text}`"
        raise ArchSyntaxError(message, type.start, type.end, "did you forget a comma?")
    return check_depth(SignatureEntry(name.start, end_of(children), name.text, _element_type(type), shape, default))


def takeover(children: Children) -> SignatureEntry:
    dots, name = children
    return SignatureEntry(dots.start, name.end, "..", "", None, name_of(name))


_ELEMENT_TYPES = ("int", "bool", "any")
_REAL_TYPES = ("real", "float", "float32", "float16", "bfloat16", "half", "double", "Tensor")


def _element_type(token: Token | None, types: Sequence[str] = _ELEMENT_TYPES) -> str:
    if token is None:
        return ""
    if token.text not in types:
        help = "omit it: elements are real by default" if token.text in _REAL_TYPES else None
        *others, last = [f"`{type}`" for type in types]
        message = f"invalid element type `{token.text}`: expected {', '.join(others)} or {last}"
        raise ArchSyntaxError(message, token.start, token.end, help)
    return token.text


def results(children: Children) -> tuple[tree.Output, ...]:
    if children and not children[1]:
        help = "a function of numbers has no `->`"
        raise ArchSyntaxError("expected an output after `->`", children[0].start, children[0].end, help)
    return children[1] if children else ()


def output(children: Children) -> tree.Output:
    optional = isinstance(children[-1], Token)
    *words, shape = children[:-1] if optional else children
    type = _element_type(words.pop()) if len(words) == 2 or (words and words[0].text in _ELEMENT_TYPES) else ""
    name = words[0].text if words else ""
    return check_depth(tree.Output(children[0].start, children[-1].end, name, type, shape, optional))


# Statements -----------------------------------------------------------------------------------------------------------


def bind(children: Children) -> tree.Assign:
    *targets, _, value = children
    names = tuple(name_of(t) for t in words(targets))
    return check_depth(tree.Assign(names[0].start, value.end, names, value))


def declare(children: Children) -> tree.Declare:
    value, *loop = children
    end = end_of(children)
    start = value.start
    condition = None
    if isinstance(value, tree.Conditional) and value.otherwise is None:
        value, condition = value.value, value.condition
    return check_depth(tree.Declare(start, end, value, condition, _optional(loop)))


def param(children: Children) -> tree.TensorDeclaration:
    address, _, modifiers, kind, type, shape, initialization, condition, loop = children
    start, end = address.start, end_of(children)
    value, initial = (None, initialization) if isinstance(initialization, tree.Initializer) else (initialization, None)
    element_type = _element_type(type, ("int", "bool"))
    return check_depth(
        tree.TensorDeclaration(
            start, end, address, modifiers, kind.text, element_type, shape, value, initial, condition, loop
        )
    )


def initial(children: Children) -> tree.Expr | tree.Initializer | None:
    if not children:
        return None
    sign, first, *_ = children
    if sign.text == "=":
        return first
    return tree.Initializer(sign.start, children[-1].end, first.text, nodes(children))


def tie(children: Children) -> tree.Tie:
    word, alias, _, counted, condition, loop = children
    return check_depth(tree.Tie(word.start, end_of(children), alias, counted, condition, loop))


def require(children: Children) -> tree.Require:
    word, condition, *message = children
    return check_depth(tree.Require(word.start, children[-1].end, condition, text_of(message[1]) if message else None))


def role(children: Children) -> tree.Role:
    return check_depth(tree.Role(children[0].start, children[-1].end, children[1].text, nodes(children)))


def label(children: Children) -> tree.Label:
    word, text, *_ = children
    if not text_of(text).strip():
        raise ArchSyntaxError("a label cannot be empty", text.start, text.end)
    return check_depth(tree.Label(word.start, children[-1].end, text_of(text), nodes(children)))


def result(children: Children) -> tree.Return:
    return check_depth(tree.Return(children[0].start, children[-1].end, nodes(children)))


def branch(children: Children) -> tree.If:
    word, condition, body, *else_part = children
    otherwise: tuple[tree.Statement, ...] = ()
    if else_part:
        otherwise = else_part[1].items if isinstance(else_part[1], _Block) else (else_part[1],)
    node = tree.If(word.start, children[-1].end, check_depth(condition), body.items, otherwise)
    links, link = 0, node
    while len(link.otherwise) == 1 and isinstance(link.otherwise[0], tree.If):
        links, link = links + 1, link.otherwise[0]
    if links > MAX_BRANCH_LENGTH:
        raise ArchSyntaxError(
            f"too many `else if` branches: the limit is {MAX_BRANCH_LENGTH}", node.start, node.start + 2, code="budget"
        )
    return node


def repeat(children: Children) -> tree.For:
    loop, body = children
    return tree.For(loop.start, body.end, check_depth(loop), body.items)


def loop(children: Children) -> tree.Loop:
    word, index, _, first, _, last = children
    return tree.Loop(word.start, last.end, index.text, first, last)


MAKERS: dict[str, NodeMaker] = {
    **EXPRESSIONS,
    **{
        rule.__name__: rule
        for rule in (
            *(file, imports, imported, dims, model, expects, expect, definition, entry, takeover, results, output),
            *(bind, declare, param, initial, tie, require, role, label, result, branch, repeat, loop),
        )
    },
    **dict.fromkeys(("shape", "dtype", "default", "repeated", "condition"), _optional),
    **dict.fromkeys(("entries", "outputs"), nodes),
    "body": _block,
}
"""The function that constructs the node of each rule."""
