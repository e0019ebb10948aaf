"""Context of syntax errors, and advice on Python and PyTorch syntax: attributes, methods, modules and indexing."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.core.record import Record
from archspec.language.syntax.machine import Token

ENDS = ("_NL", "$END")
"""The kinds of tokens that end a statement."""


class ErrorContext(Record):
    """The context of an error: the tokens before, at and after it, and the accepted token kinds."""

    before: Sequence[Token]
    unexpected: Token
    after: Sequence[Token]
    accepted: set[str]
    start: str
    keywords: frozenset[str]

    @property
    def previous(self) -> Token:
        return self.before[-1] if self.before else Token(self.unexpected.start, self.unexpected.start, "", "")

    @property
    def first(self) -> Token:
        return self.before[0] if self.before else self.unexpected

    @property
    def next(self) -> Token:
        return self.after[0] if self.after else Token(self.unexpected.end, self.unexpected.end, "$END", "")

    @property
    def at_end(self) -> bool:
        return self.unexpected.kind in ENDS

    @property
    def wants_value(self) -> bool:
        """Whether an expression can begin here."""
        return {"INT", "["} <= self.accepted

    @property
    def has_value(self) -> bool:
        """Whether an expression can end here."""
        return "+" in self.accepted and not self.wants_value

    @property
    def joined(self) -> str:
        """The unexpected token joined to the previous one, if they are adjacent."""
        return self.previous.text + self.unexpected.text if self.previous.end == self.unexpected.start else ""


class Advice(Record):
    """A more specific message, help or span from a rule; None keeps the default."""

    message: str | None = None
    help: str | None = None
    span: tuple[int, int] | None = None


_WORDS = ("NAME", "WORD", "INT")
_OPEN, _CLOSE = ("(", "[", "{"), (")", "]", "}")
_LIBRARIES = frozenset(("nn", "torch", "F", "np", "numpy", "jnp", "jax", "math", "tf", "functional"))
_SIZE_ATTRIBUTES = frozenset(("shape", "size", "ndim", "dim", "dtype", "device", "numel"))
_BINARY_METHODS = frozenset(("add", "sub", "mul", "div", "matmul", "mm", "bmm", "pow", "max", "min"))
_METHODS = (
    "abs argmax ceil clamp contiguous cos cumsum exp expand flatten float floor gelu int log long masked_fill mean "
    "permute relu repeat reshape rsqrt sigmoid silu sin softmax split sqrt squeeze sum t tanh topk transpose tril triu "
    "unsqueeze view"
)
_LISTS = ("reshape", "permute", "expand")
_ACTIVATIONS = ("ReLU", "GELU", "SiLU", "Mish", "Tanh", "Sigmoid", "Softmax")
_RENAMED_FUNCTIONS = {
    "float": "real",
    "long": "int",
    "view": "reshape",
    "t": "transpose",
    "mm": "matmul",
    "bmm": "matmul",
}
_REPLACEMENT_HELP = {
    "ceil": "write `-floor(-x)`",
    "rsqrt": "write `1.0 / sqrt(x)`",
    "repeat": 'use `repeat` with a pattern of axes, as in `repeat("n d -> (r n) d", r = 2)(x)`',
    **dict.fromkeys(("unsqueeze", "squeeze", "flatten"), "write `reshape([...])(x)`"),
    "contiguous": "remove it: tensors have no memory layout",
    "mean": "use `sum(axis)(x)` and divide, or `mean(x)` for a sequence, with `import std { mean }`",
    "masked_fill": "write `where(mask, value, x)`",
    "clamp": "write `min(max(x, low), high)`",
    **dict.fromkeys(("tril", "triu"), "use `causal_mask`, with `import std { causal_mask }`"),
}
"""Help for methods without a function of the same form."""


def explain_python_syntax(context: ErrorContext) -> Advice | None:
    """Explain attributes, methods, module names, and indices of tensors."""
    return _explain_attribute(context) or _explain_index(context)


# Attributes -----------------------------------------------------------------------------------------------------------


def _explain_attribute(context: ErrorContext) -> Advice | None:
    """Explain `x.shape`, `x.transpose(1, 2)`, `nn.Module`, `self.up`, and an address without a leading dot."""
    tokens = [*context.before, context.unexpected, *context.after]
    dot = len(context.before)
    if context.unexpected.text != ".":
        dot = _subscript_start(tokens, dot) - 2
        if dot <= 0 or tokens[dot].text != "." or ":" not in context.accepted or context.has_value:
            return None
    if (
        dot + 1 >= len(tokens)
        or tokens[dot + 1].kind not in ("NAME", "WORD")
        or tokens[dot - 1].kind in ("INT", "REAL")
    ):
        return None
    first, name = _path_start(tokens, dot), tokens[dot + 1]
    if first < dot and tokens[first].kind != "NAME":
        return None
    owner = tokens[first].text if first < dot else ""
    called = format_tokens(tokens[dot + 2 : dot + 3]) == "("
    span = (tokens[first].start if owner else name.start, name.end)
    if owner in _LIBRARIES:
        return Advice(f"unknown module `{format_tokens(tokens[first:dot])}`", _import_help(name.text), span)
    if owner == "self":
        return _explain_self(tokens, first + 2, dot + 2, span)
    if context.unexpected.text == "=" or context.first.kind in ("import", "export"):
        return None
    if first == 0 and not called:
        return None  # an address at the start of a statement
    if name.text in _SIZE_ATTRIBUTES:
        help = "name the sizes in the shape of an input, as in `x [batch, seq]`, and use these names"
        return Advice(f"a tensor has no attribute `{name.text}`", help, span)
    receiver = format_tokens(tokens[first:dot]) if owner else "x"
    if name.text in _BINARY_METHODS or name.text in _METHODS.split():
        arguments = _tokens_in_brackets(tokens, dot + 2) if called else ()
        return Advice(f"a tensor has no method `{name.text}`", _call_help(name.text, receiver, arguments), span)
    if not owner:
        return None
    address = format_tokens(tokens[first : dot + 2])
    return Advice(f"expected an expression, found the address `{address}`", _reference_help(address), span)


def _path_start(tokens: Sequence[Token], end: int) -> int:
    """Return the start of the dotted path that ends before `end`; `end` if there is none."""
    first = end
    while (word := _subscript_start(tokens, first) - 1) >= 0 and tokens[word].kind in _WORDS:
        if word < 2 or tokens[word - 1].text != ".":
            return word
        first = word - 1
    return end


def _subscript_start(tokens: Sequence[Token], end: int) -> int:
    """Return the start of the subscript that ends before `end`; `end` if there is none."""
    if end and tokens[end - 1].text == "]":
        opened = innermost_open_bracket(tokens[: end - 1])
        return end if opened is None else opened
    return end


def _import_help(name: str) -> str:
    if name[0].isupper() and name not in _ACTIVATIONS:
        return f"write `{name}(...)`, and import it if the standard library has it: `import std {{ {name} }}`"
    return f"write `{name.lower()}` without the name of a module"


def _explain_self(tokens: Sequence[Token], first: int, end: int, span: tuple[int, int]) -> Advice:
    """Explain an address after `self`, whose words and indices continue after `end`."""
    while end + 1 < len(tokens):
        if tokens[end].text == "." and tokens[end + 1].kind in _WORDS:
            end += 2
        elif tokens[end].text == "[":
            end += len(_tokens_in_brackets(tokens, end)) + 2
        else:
            break
    address = format_tokens(tokens[first:end])
    declares = end < len(tokens) and tokens[end].text == "="
    help = f"declare it with a colon: `{address}: ...`" if declares else _reference_help(address)
    return Advice("unknown name `self`", help, span)


def _reference_help(address: str) -> str:
    return f"write `.{address}` to refer to its declaration"


def _call_help(name: str, receiver: str, arguments: Sequence[Token]) -> str:
    """Return help for a method call: the equivalent function call."""
    if name in _REPLACEMENT_HELP:
        return _REPLACEMENT_HELP[name]
    name = _RENAMED_FUNCTIONS.get(name, name)
    if name in ("max", "min") and (not arguments or arguments[0].kind == "INT" or arguments[0].text in ("-", "dim")):
        return f"write `amax(axis)({receiver})`" if name == "max" else f"write `-amax(axis)(-{receiver})`"
    values = format_tokens([t._replace(text="axis", kind="NAME") if t.text == "dim" else t for t in arguments])
    if name == "split" and not values.startswith("["):
        values = "[size, size]"
    if name in _LISTS and not values.startswith("["):
        values = f"[{values or '...'}]"
    if not values or name in ("real", "int"):
        return f"write `{name}({receiver})`"
    if name in _BINARY_METHODS:
        return f"write `{name}({receiver}, {values})`"
    return f"write `{name}({values})({receiver})`"


# Indices --------------------------------------------------------------------------------------------------------------


def _explain_index(context: ErrorContext) -> Advice | None:
    """Explain `x[:, 0]`, `x[1:]`, `x[..., 0]`, `x[0, 1]`."""
    before = context.before
    opened = innermost_open_bracket(before)
    if context.unexpected.text not in (":", ",", "...") or opened is None or opened == 0 or before[opened].text != "[":
        return None
    if before[opened - 1].kind not in ("NAME", "WORD", ")", "]") or before[0].kind in ("fn", "layer", "block"):
        return None
    tokens = [*before, context.unexpected, *context.after]
    inner = _tokens_in_brackets(tokens, opened)
    close = opened + len(inner) + 1
    if close >= len(tokens):
        return None
    message = f"cannot index a tensor with `[{format_tokens(inner)}]`"
    return Advice(message, slice_help(_split_items(inner)), (before[opened - 1].start, tokens[close].end))


def slice_help(items: Sequence[Sequence[Token]]) -> str:
    """Return help for tensor indexing: the equivalent `slice` or `pick` if one suffices."""
    leading = bool(items) and [t.text for t in items[0]] == ["..."]
    selected = [(k, item) for k, item in enumerate(items) if [t.text for t in item] not in ([":"], ["..."])]
    if len(selected) != 1 or not selected[0][1]:
        return "use `slice(axis, start, stop)(x)` to take part of an axis, and `reshape` to add or drop one"
    axis, item = selected[0]
    axis -= len(items) if leading else 0
    colons = [k for k, token in enumerate(item) if token.text == ":"]
    if len(colons) > 1 or format_tokens(item).startswith("["):
        return "use `slice(axis, start, stop)(x)` for adjacent elements, and `gather` for others"
    if colons:
        colon = colons[0]
        start, stop = format_tokens(item[:colon]) or "0", format_tokens(item[colon + 1 :])
        return f"write `slice({axis}, {start}{', ' if stop else ''}{stop})(x)`"
    index = format_tokens(item)
    if index == "none" or index == "None":
        return "use `reshape` to add an axis of size 1"
    return f"write `pick({axis}, {index})(x)`"


# Tokens ---------------------------------------------------------------------------------------------------------------


def format_tokens(tokens: Sequence[Token]) -> str:
    """Format tokens as source, with a space between separated tokens."""
    text = ""
    for k, token in enumerate(tokens):
        text += " " * (k > 0 and tokens[k - 1].end < token.start) + token.text
    return text if len(text) <= 60 else "..."


def innermost_open_bracket(tokens: Sequence[Token]) -> int | None:
    """Return the index of the innermost open bracket; None if all are closed."""
    depth = 0
    for index in range(len(tokens) - 1, -1, -1):
        depth += (tokens[index].kind in _CLOSE) - (tokens[index].kind in _OPEN)
        if depth < 0:
            return index
    return None


def _tokens_in_brackets(tokens: Sequence[Token], opened: int) -> Sequence[Token]:
    """Return the tokens between the bracket at `opened` and its closing bracket."""
    depth = 0
    for index in range(opened, len(tokens)):
        depth += (tokens[index].kind in _OPEN) - (tokens[index].kind in _CLOSE)
        if depth == 0:
            return tokens[opened + 1 : index]
    return tokens[opened + 1 :]


def _split_items(tokens: Sequence[Token]) -> list[list[Token]]:
    """Split tokens at the commas outside brackets."""
    items: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.kind in _OPEN) - (token.kind in _CLOSE)
        if token.text == "," and depth == 0:
            items.append([])
        else:
            items[-1].append(token)
    return items if items[-1] else items[:-1]
