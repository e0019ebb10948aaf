"""Layers as classes derived from modules of `torch.nn`, which add the initialization of weights.

`known_modules.py` decides which layers are such modules.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from archspec.codegen.classes.init_method import InitMethod
from archspec.codegen.classes.known_modules import LayerForm, batch_norm_eps, layer_form, rms_eps
from archspec.codegen.python.trees import apply, literal, name, py, text
from archspec.codegen.scope.context import Context
from archspec.codegen.scope.operations import constant
from archspec.compiler.elaborate.trace import DefinitionUse
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.unit import Definition
from archspec.ir.ops import OPS

_BATCH_NORM = {
    "weight": "constant(1.0)",
    "bias": "constant(0.0)",
    "running_mean": "constant(0.0)",
    "running_var": "constant(1.0)",
}
_TORCH_INITIALIZERS = {
    "nn.LayerNorm": {"weight": "constant(1.0)", "bias": "constant(0.0)"},
    "nn.RMSNorm": {"weight": "constant(1.0)"},
    "nn.GroupNorm": {"weight": "constant(1.0)", "bias": "constant(0.0)"},
    **{f"nn.BatchNorm{axes}d": _BATCH_NORM for axes in (1, 2, 3)},
}
"""How the weights of a module of `torch.nn` start out by themselves."""

Arguments = tuple[list[ast.expr], dict[str, ast.expr]]


class TorchLayer(NamedTuple):
    """A class of `torch.nn`, and the statements of `__init__` in a class derived from it."""

    base: str
    init: list[ast.stmt]


def torch_layer(context: Context, definition: Definition, uses: Sequence[DefinitionUse]) -> TorchLayer | None:
    """A layer as a class derived from one of `torch.nn`, if it is one in all its uses."""
    form = layer_form(uses) if uses else None
    statements = context.form(definition).body
    if (
        form is None
        or context.bases(definition)
        or any(isinstance(s, nodes.Tie | nodes.For | nodes.If) for s in statements)
    ):
        return None
    declarations = [d for s in statements if isinstance(s, nodes.Declare) for d in s.declares]
    tensors = {str(d.what.address.fixed): d for d in declarations if isinstance(d.what, nodes.TensorDeclaration)}
    if len(tensors) < len(declarations):
        return None
    return _Layer(InitMethod(context, definition, uses), form, tensors).translated()


class _Layer:
    """One layer, with its tensors by name."""

    def __init__(self, init: InitMethod, form: LayerForm, tensors: dict[str, nodes.GuardedDeclaration]) -> None:
        self.init = init
        self.scope = init.scope
        self.code = init.static.code
        self.form = form
        self.tensors = tensors

    def translated(self) -> TorchLayer | None:
        body = self.init.names()
        arguments = self._arguments()
        if arguments is None:
            return None
        body.append(ast.Expr(apply(py("super().__init__"), *arguments)))
        for word, declaration in self.tensors.items():
            body += self._initialized(word, declaration)
        return TorchLayer(self.form.name, body)

    def _arguments(self) -> Arguments | None:
        """What the constructor of the module of `torch.nn` is given."""
        weight = self.tensors["weight"].what
        assert isinstance(weight, nodes.TensorDeclaration)
        sizes = [self.code(item) for item in weight.shape.items]
        bias = self._has_bias()
        keywords: dict[str, ast.expr] = {}
        if bias is not None and self.form.name not in ("nn.Embedding", "nn.RMSNorm"):
            keywords["bias"] = bias
        match self.form.name:
            case "nn.Linear":
                return [sizes[1], sizes[0]], keywords
            case "nn.Embedding":
                return sizes, keywords
            case "nn.RMSNorm" | "nn.BatchNorm1d" | "nn.BatchNorm2d" | "nn.BatchNorm3d":
                eps_of = rms_eps if self.form.name == "nn.RMSNorm" else batch_norm_eps
                eps = self._hyperparameter([eps_of(use) for use in self.scope.uses])
                return (sizes, {"eps": eps}) if eps is not None else None
            case _:
                settings = self._settings(self.form.op or "")
                if settings is None:
                    return None
        if self.form.name == "nn.LayerNorm":
            return sizes, {"eps": settings["eps"], **keywords}
        if self.form.name == "nn.GroupNorm":
            return [settings["groups"], sizes[0]], {"eps": settings["eps"]}
        chosen = {w: c for w, c in settings.items() if w != "transposed" and constant(c) != {"padding": 0}.get(w, 1)}
        groups = settings["groups"]
        channels = sizes[1] if constant(groups) == 1 else self._channels(weight, groups)
        kernel = sizes[2] if len({text(s) for s in sizes[2:]}) == 1 else ast.Tuple(sizes[2:], ast.Load())
        ends = [sizes[0], channels] if "Transpose" in self.form.name else [channels, sizes[0]]
        return [*ends, kernel], {**chosen, **keywords}

    def _channels(self, weight: nodes.TensorDeclaration, groups: ast.expr) -> ast.expr:
        """The channels that go in (come out, if transposed): the weight has as many as one group of them."""
        item = weight.shape.items[1]
        if isinstance(item, nodes.Binary) and item.operator == "//" and text(self.code(item.right)) == text(groups):
            return self.code(item.left)
        return py("size * groups", size=self.code(item), groups=groups)

    def _has_bias(self) -> ast.expr | None:
        """Whether there is a bias, as an argument; None where there is, as by default."""
        if "bias" not in self.tensors:
            return literal(False)
        guards = self.tensors["bias"].guards
        truth = self.scope.truth
        open_ = [condition for condition, _ in guards if truth(condition) is None]
        if open_:
            return self.code(open_[0])
        return None if all(truth(condition) is wanted for condition, wanted in guards) else literal(False)

    def _settings(self, op: str) -> dict[str, ast.expr] | None:
        """The hyperparameters of the operation that a layer returns, as written there."""
        last = self.scope.form.body[-1]
        assert isinstance(last, nodes.Return)
        (call,) = last.values
        if not isinstance(call, nodes.Apply) or self.scope.trace.callees(call) != [OPS[op]]:
            return None
        given = self.scope.trace.bound_arguments(call, OPS[op]).hyperparameters
        settings = {a.name: literal(a.default) for a in OPS[op].attributes if a.name not in given}
        return settings | {word: self.code(item.value) for word, item in given.items()}

    def _hyperparameter(self, values: Sequence[float | None]) -> ast.expr | None:
        """The one hyperparameter that has these values in the uses, or the one value there is."""
        if len(set(values)) == 1:
            return literal(values[0])
        words = [
            word
            for word in self.scope.definition.hyperparameters
            if all(use.values[word] == value for use, value in zip(self.scope.uses, values, strict=True))
        ]
        return name(self.scope.context.parameters(self.scope.definition)[words[0]]) if len(words) == 1 else None

    def _initialized(self, word: str, declaration: nodes.GuardedDeclaration) -> list[ast.stmt]:
        """How a tensor is initialized, where that is not what the module of `torch.nn` does."""
        node, truth = declaration.what, self.scope.truth
        assert isinstance(node, nodes.TensorDeclaration)
        if any(truth(condition) not in (None, wanted) for condition, wanted in declaration.guards):
            return []
        body, _ = self.scope.statements.capture_statements(lambda: self._initialize(word, node))
        open_ = [self.code(condition) for condition, _ in declaration.guards if truth(condition) is None]
        return [ast.If(open_[0], body, [])] if open_ and body else body

    def _initialize(self, word: str, node: nodes.TensorDeclaration) -> None:
        place = self.scope.places.place([word])
        if node.value is not None:
            self.init.tensor(place, node)
            return
        if node.initial is not None:
            written = f"{node.initial.name}({', '.join(text(self.code(a)) for a in node.initial.arguments)})"
            if _TORCH_INITIALIZERS.get(self.form.name, {}).get(word) != written:
                self.init.initialize(place.code, node)
        if "frozen" in node.modifiers:
            self.scope.statements.body.append(ast.Expr(py("x.requires_grad_(False)", x=place.code)))
