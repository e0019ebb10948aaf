"""The statements of one generated function while it is written, and the names in it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import TypeVar

from archspec.codegen.python.trees import bind, names_in
from archspec.codegen.scope.names import python_name
from archspec.codegen.scope.values import FREE, CodeValue

Made = TypeVar("Made")


class Statements:
    """The statements so far. `taken` are names of the file; `parameters` are Python names for names of the spec."""

    def __init__(self, taken: Iterable[str], parameters: dict[str, str]) -> None:
        self.body: list[ast.stmt] = []
        self.local = dict(parameters)
        self.clock = 0
        self.widened: set[str] = set()  # variables bound to reals that may be wider than the model's
        self._taken = set(taken)
        self._bound: dict[str, int] = {}  # when variables were bound last

    def bind(self, variable: str, code: ast.expr) -> None:
        """Appends `variable = code`, unless that says nothing."""
        if isinstance(code, ast.Name) and code.id == variable:
            return
        self.note(variable)
        self.body.append(bind(variable, code))

    def bind_value(self, variable: str, value: CodeValue) -> None:
        """Binds a variable to a value."""
        if value.kind == FREE:
            self.widened.add(variable)
        self.bind(variable, value.code)

    def note(self, variable: str) -> None:
        """Notes that a variable is bound (again) here."""
        self.clock += 1
        self._bound[variable] = self.clock

    def is_current(self, value: CodeValue) -> bool:
        """Whether the code of a value means the same now as where it was computed."""
        return all(self._bound.get(word, 0) <= value.made for word in names_in([value.code]))

    def capture_statements(self, work: Callable[[], Made]) -> tuple[list[ast.stmt], Made]:
        """Run a function and return the statements that it appended, separately, with its result."""
        outer, self.body = self.body, []
        made = work()
        inner, self.body = self.body, outer
        return inner, made

    def saved(self) -> Callable[[], None]:
        """Returns a function that undoes everything since."""
        body, local, bound = list(self.body), dict(self.local), dict(self._bound)

        def restore() -> None:
            self.body, self.local, self._bound = body, local, bound

        return restore

    def variable(self, word: str) -> str:
        """The Python name of one of the spec's, or of the key of a dimension."""
        if word not in self.local:
            self.local[word] = python_name(word.removeprefix("dim "), self._taken | set(self.local.values()))
        return self.local[word]

    def fresh(self, *words: str, avoid: Iterable[str] = ()) -> str:
        """A name that nothing else has, one of `words` if possible; `avoid` are names of the spec."""
        used = self._taken | set(self.local.values()) | set(avoid)
        chosen = next((w for w in words if python_name(w, used) == w), None) or python_name(words[0], used)
        self.local[f" {chosen}"] = chosen
        return chosen
