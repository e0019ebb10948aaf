"""The hyperparameters of definitions as parameters in Python: annotations and defaults."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from archspec.codegen.classes.init_method import InitMethod
from archspec.codegen.python.layout import unparse_line
from archspec.codegen.python.trees import bind, literal, name, names_in, py, sequence
from archspec.codegen.scope.constructor_arguments import hyperparameter_default, passed_argument
from archspec.codegen.scope.context import Context
from archspec.compiler.elaborate.trace import DefinitionUse
from archspec.compiler.evaluate.values import Partial, Value
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.unit import Definition
from archspec.core.algebra import Polynomial
from archspec.ir.ops import Op


class Parameters:
    """How hyperparameters are declared."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def default(self, definition: Definition, word: str) -> ast.expr | None:
        """Return the default of a parameter: nothing if every use passes it, the literal `None` if it is computed from
        others.
        """
        default = hyperparameter_default(definition, word)
        if default is None or not self._is_omitted(definition, word):
            return None
        constant = self._constant(default)
        return constant if constant is not None else literal(None)

    def is_computed(self, definition: Definition, word: str) -> bool:
        """Whether a hyperparameter has a default that depends on others."""
        default = hyperparameter_default(definition, word)
        return default is not None and self._constant(default) is None

    def keyword_only(self, definition: Definition, words: Sequence[str]) -> frozenset[str]:
        """The parameters that follow one with a default, from the first that has none."""
        seen = False
        for i, word in enumerate(words):
            has_default = self.default(definition, word) is not None
            if seen and not has_default:
                return frozenset(words[i:])
            seen = seen or has_default
        return frozenset()

    def computed(self, definition: Definition, uses: Sequence[DefinitionUse], needed: set[str]) -> list[ast.stmt]:
        """The statements that work out the defaults of parameters that are needed."""
        parameters = self.context.parameters(definition)
        known = self.context.arguments.of(definition)
        needed = set(needed)
        found: list[ast.stmt] = []
        for word in reversed(definition.hyperparameters):
            parameter, default = parameters[word], hyperparameter_default(definition, word)
            if parameter not in needed or default is None or not self.is_computed(definition, word):
                continue
            is_argument = word in known.arguments
            if not is_argument and word not in known.derived:
                continue
            if is_argument and not self._is_omitted(definition, word):
                continue
            init = InitMethod(self.context, definition, uses)
            if is_argument and None in self.context.values(definition, word):
                init.scope.refuse(f"the default of `{word}` has no form in PyTorch", definition.node.name)
            made: ast.stmt = bind(parameter, init.static.code(default))
            needed |= names_in([made])
            found.insert(0, ast.If(py("x is None", x=name(parameter)), [made], []) if is_argument else made)
        return found

    def annotated(self, definition: Definition, word: str) -> str:
        """A parameter with the type of its values, and its default."""
        default = self.default(definition, word)
        kinds = {_type(value) for value in self.context.values(definition, word)} | {_type_of(default)}
        if "float" in kinds:
            kinds -= {"int"}
        known = sorted(kinds - {"None", ""}) + (["None"] if "None" in kinds else [])
        annotation = f": {' | '.join(known)}" if known and known != ["None"] else ""
        parameter = self.context.parameters(definition)[word]
        if default is None:
            return f"{parameter}{annotation}"
        return f"{parameter}{annotation}{' = ' if annotation else '='}{unparse_line(default)}"

    def _is_omitted(self, definition: Definition, word: str) -> bool:
        """Whether some use does not give a hyperparameter."""
        sites = self.context.trace.sites(definition)
        given = [passed_argument(site, word) for site in sites]
        return definition is self.context.trace.root or None in given

    def _constant(self, expr: nodes.Expr) -> ast.expr | None:
        """A default that is a constant or a definition as code."""
        match expr:
            case nodes.Literal():
                return literal(expr.value)
            case nodes.Unary(operator="-"):
                inner = self._constant(expr.operand)
                return py("-x", x=inner) if inner is not None else None
            case nodes.ListLiteral():
                items = [self._constant(item) for item in expr.items]
                known = [item for item in items if item is not None]
                return sequence(known) if len(known) == len(items) else None
            case nodes.Global(target=target):
                if isinstance(target, Definition) and target not in self.context.names:
                    return literal(None)  # no use has it
                return self.context.code_of(target)
            case _:
                return None


def _type_of(default: ast.expr | None) -> str:
    """The type of a default, "" if that says nothing: it is one of the values if it is more than a literal."""
    try:
        return _type(ast.literal_eval(default)) if default is not None else ""
    except ValueError:
        return ""


def _type(value: Value) -> str:
    match value:
        case None:
            return "None"
        case bool() | int() | float() | str():
            return value.__class__.__name__
        case Polynomial():
            return "int"
        case Definition() if value.kind != "fn":
            return "type[nn.Module]"
        case Partial() if value.kind != "fn":
            return "Callable[..., nn.Module]"
        case Definition() | Partial() | Op():
            return "Callable[..., Tensor]"
        case _:
            return "tuple"
