"""The expressions of one definition: what is known when a module is made, and how arguments find their names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from archspec.elaborate.trace import Seen, Use
from archspec.elaborate.values import key_of
from archspec.ops import OPERATORS, OPS, Op
from archspec.pytorch.code import apply, bind, literal, name, names_in, py, sequence
from archspec.pytorch.handed import Given
from archspec.pytorch.names import usable
from archspec.pytorch.operations import function_of
from archspec.pytorch.places import Part
from archspec.pytorch.values import BOOL, INT, REAL, STATIC, Several, Val
from archspec.resolve.files import Definition
from archspec.source import ArchError, fail
from archspec.syntax import tree

if TYPE_CHECKING:
    from archspec.pytorch.book import Book

NOTHING = Seen()
Made = TypeVar("Made")


class Scope:
    """Translates the static expressions of a definition. `env` holds its names, `body` the statements made so far."""

    def __init__(self, book: Book, definition: Definition, uses: Sequence[Use]) -> None:
        self.book = book
        self.definition = definition
        self.unit = definition.unit
        self.uses = uses
        self.env: dict[str, Val | Several] = {}
        self.body: list[ast.stmt] = []
        self.taken = book.taken
        self.local: dict[str, str] = {}
        self.clock = 0
        self.bound: dict[str, int] = {}  # when variables were bound last
        self.settles = True  # whether conditions that the model settles are left out of expressions

    # Statements

    def bind(self, variable: str, code: ast.expr) -> None:
        """Appends `variable = code`, unless that says nothing."""
        if isinstance(code, ast.Name) and code.id == variable:
            return
        self.note(variable)
        self.body.append(bind(variable, code))

    def note(self, variable: str) -> None:
        """Takes down that a variable is bound (again) here."""
        self.clock += 1
        self.bound[variable] = self.clock

    def is_current(self, value: Val) -> bool:
        """Whether the code of a value means the same now as where it was computed."""
        return all(self.bound.get(word, 0) <= value.made for word in names_in([value.code]))

    def aside(self, work: Callable[[], Made]) -> tuple[list[ast.stmt], Made]:
        """What some work gives, and the statements that it appends, which are kept apart."""
        outer, self.body = self.body, []
        made = work()
        inner, self.body = self.body, outer
        return inner, made

    @contextmanager
    def streaming_in(self, stream: Val | None) -> Generator[None]:
        """Binds `_` to a stream meanwhile."""
        outer = self.env.get("_")
        if stream is not None:
            self.env["_"] = stream
        yield
        if outer is not None:
            self.env["_"] = outer
        else:
            self.env.pop("_", None)

    # What is known

    def refuse(self, message: str, node: Any) -> NoReturn:
        raise untranslatable(message, self.definition, node)

    def seen(self, node: Any) -> Seen:
        return self.book.trace.seen.get(id(node), NOTHING)

    def was_seen(self, node: Any) -> bool:
        """Whether a step or expression was ever come to."""
        return id(node) in self.book.trace.seen

    def truth(self, condition: tree.Expr) -> bool | None:
        return self.book.trace.truth(condition)

    def variable(self, word: str) -> str:
        """The Python name of one of the spec's."""
        if word not in self.local:
            self.local[word] = usable(word, self.taken | set(self.local.values()))
        return self.local[word]

    def fresh(self, *words: str) -> str:
        """A name that nothing else has."""
        used = self.taken | set(self.local.values()) | set(self.env) | set(self.unit.dims)
        chosen = next((w for w in words if usable(w, used) == w), None) or usable(words[0], used)
        self.local[f" {chosen}"] = chosen
        return chosen

    def is_static(self, expr: tree.Expr) -> bool:
        """Whether an expression was a number or the like wherever it was evaluated, and never a tensor."""
        if isinstance(expr, tree.Literal):
            return True
        seen = self.seen(expr)
        return not seen.types and bool(seen.statics)

    def absent(self, expr: tree.Expr) -> bool:
        """Whether an expression was `none` wherever it was evaluated."""
        return self.is_static(expr) and (
            expr.value is None if isinstance(expr, tree.Literal) else set(self.seen(expr).statics) == {None}
        )

    # Expressions that are known when a module is made

    def verbatim(self, expr: tree.Expr) -> ast.expr:
        """A static expression with all that the spec says, conditions that the model settles included."""
        self.settles = False
        code = self.static(expr)
        self.settles = True
        return code

    def static(self, expr: tree.Expr) -> ast.expr:
        match expr:
            case tree.Literal():
                return literal(expr.value)
            case tree.Name():
                return self.named(expr)
            case tree.Listing():
                return sequence([self.static(item) for item in expr.items])
            case tree.Unary():
                if expr.operator == "not":
                    return py("not x", x=self.static(expr.operand))
                return py("-x", x=self.static(expr.operand))
            case tree.Binary():
                return self._binary(expr)
            case tree.Conditional():
                chosen = self.truth(expr.condition)
                if chosen is not None and self.settles:
                    value = expr.value if chosen else expr.otherwise
                    return self.static(value) if value is not None else literal(None)
                otherwise = self.static(expr.otherwise) if expr.otherwise is not None else literal(None)
                return ast.IfExp(self.static(expr.condition), self.static(expr.value), otherwise)
            case tree.Subscript():
                return ast.Subscript(self.static(expr.value), self.static(expr.position), ast.Load())
            case tree.Call():
                return self._static_call(expr)
            case _:
                self.refuse("this has no form in PyTorch", expr)

    def named(self, expr: tree.Name) -> ast.expr:
        """A name as code."""
        word = expr.text
        if word in self.env and not self.varies(word):
            (value,) = {key_of(v): v for v in self.book.values(self.definition, word)}.values()
            if isinstance(value, Definition | Op):
                return self.callable(value, expr)
        known = self.env.get(word)
        if isinstance(known, Val) and known.is_none and not self.absent(expr):
            return name(self.variable(word))  # `none` in some uses or rounds of a loop only
        if known is not None:
            return known.code
        binding = self.unit.names.get(word)
        target = binding.target if binding is not None else OPS.get(word)
        if target is not None:
            return self.callable(target, expr)
        return name(self.variable(word))

    def varies(self, word: str) -> bool:
        """Whether a name is not a hyperparameter that has one value in all uses."""
        if word not in self.definition.hyperparameters:
            return True
        return len({key_of(v) for v in self.book.values(self.definition, word)}) != 1

    def callable(self, target: Definition | Op, node: Any) -> ast.expr:
        """A definition or operation that is handed on."""
        if isinstance(target, Definition):
            return name(self.book.written(target).name)
        function = function_of(target)
        if function is None:
            self.refuse(f"the operation `{target.name}` cannot be handed on in PyTorch", node)
        return function

    def _binary(self, expr: tree.Binary) -> ast.expr:
        operator = expr.operator
        if operator in ("and", "or") and self.settles:
            for side, other in ((expr.left, expr.right), (expr.right, expr.left)):
                known = self.truth(side)
                if known is not None:
                    return self.static(other) if known == (operator == "and") else literal(known)
        left, right = self.static(expr.left), self.static(expr.right)
        if operator in ("==", "!="):
            word = "is" if operator == "==" else "is not"
            for side, other in ((left, right), (right, left)):
                if isinstance(other, ast.Constant) and other.value is None:
                    return py(f"a {word} None", a=side)
        return py(OPS[OPERATORS[operator]].python, a=left, b=right)

    def _static_call(self, expr: tree.Call) -> ast.expr:
        assert isinstance(expr.callee, tree.Name)
        values = [self.static(a.value) for a in expr.lists[0].items if a.value is not None]
        word = expr.callee.text
        if word == "len":
            return apply(name("len"), values)
        op = OPS[word]
        if not op.python:
            self.refuse(f"`{word}` of numbers has no form in PyTorch", expr)
        return py(op.python, **dict(zip([i.name for i in op.inputs], values, strict=True)))

    def number(self, expr: tree.Expr) -> Val:
        """A static expression as a value."""
        statics = [expr.value] if isinstance(expr, tree.Literal) else list(self.seen(expr).statics.values())
        return Val(self.static(expr), STATIC, 0, counts=self.counts_as(statics))

    def counts_as(self, values: Sequence[Any]) -> str:
        """What static values count as beside tensors."""
        if any(isinstance(v, float) for v in values):
            return REAL
        return BOOL if any(isinstance(v, bool) for v in values) else INT

    # Addresses and arguments

    def parts(self, address: tree.Address) -> list[Part]:
        """The parts of an address; a number that is an expression stays one."""
        found: list[Part] = []
        for segment in address.segments:
            if segment.number is None:
                found.append(segment.text)
            else:
                code = self.static(segment.number)
                found.append(str(code.value) if isinstance(code, ast.Constant) else code)
        return found

    def hyperparameters(
        self, callee: Definition, arguments: tree.Arguments | None, kept: Sequence[str]
    ) -> tuple[list[ast.expr], dict[str, ast.expr]]:
        """What a use gives to the hyperparameters of a definition that are kept: by position, and by name."""
        given = match(tuple(callee.hyperparameters), arguments)
        inherited = self.definition.hyperparameters if ".." in given else {}
        keywords: dict[str, ast.expr] = {}
        positional: list[ast.expr] = []
        by_position = True
        parameters = self.book.parameters(callee)
        for word in self.book.handed.about(callee, parameters) - set(kept):
            item = given.get(word)
            if item is not None and item.value is not None and self.is_static(item.value):
                self.book.handed.given.append(Given(self.definition, callee, word, self.static(item.value)))
            elif item is None and word in inherited and word in self.env:
                self.book.handed.given.append(Given(self.definition, callee, word, self.env[word].code))
        for word in kept:
            item = given.get(word)
            if item is not None and item.value is not None:
                code = self.static(item.value)
            elif word in inherited and word in self.env:
                code = self.env[word].code
            else:
                by_position = False
                continue
            by_position = by_position and (item is None or not item.name)
            if by_position and callee.kind != "fn":
                positional.append(code)
            else:
                keywords[parameters[word]] = code
        return positional, keywords


def match(names: Sequence[str], arguments: tree.Arguments | None) -> Mapping[str, tree.Argument]:
    """Which argument goes to which name; ".." to itself."""
    found: dict[str, tree.Argument] = {}
    position = 0
    for item in arguments.items if arguments else ():
        word = item.name
        if not word:
            word = names[position]
            position += 1
        found[word] = item
    return found


def untranslatable(message: str, definition: Definition, node: Any) -> ArchError:
    return fail("untranslatable", message, definition.unit.span(node))
