"""Names of the values of a body: what the source assigns them to, the layer that makes them, or their role."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from archspec.pytorch.lift.notation.names import role_of_address, role_of_class
from archspec.pytorch.lift.statements.chains import Chains
from archspec.pytorch.values.values import LoopValue, Value

ATTENDED = (("q", "query"), ("k", "key"), ("v", "value"))
"""The names of what attention is applied to, by position."""

SUMS = {"attention": "attended", "feed_forward": "updated", "embedding": "embedded", "pooler": "pooled"}
"""Names for sums with what a layer makes, by its role."""

ROLES = {
    "embedded": ("embedding", "Embedding"),
    "projected": ("linear", "Linear", "expert_linear"),
    "features": ("conv", "Conv1d", "Conv2d", "ConvTranspose1d", "ConvTranspose2d", "CausalConv1d"),
    "normed": ("layer_norm", "rms_norm", "group_norm", "LayerNorm", "RMSNorm", "GroupNorm", "BatchNorm"),
    "attended": ("attention",),
    "heads": ("split_heads", "repeat_heads"),
    "merged": ("merge_heads",),
    "rotated": ("rotate",),
    "shares": ("softmax",),
    "gate": ("sigmoid", "silu"),
    "activated": ("gelu", "gelu_tanh", "relu", "relu2", "tanh", "quick_gelu", "mish", "softplus", "leaky_relu", "elu"),
    "joined": ("concat",),
    "stacked": ("stack",),
    "product": ("matmul",),
    "summed": ("add",),
    "difference": ("sub",),
    "scaled": ("mul", "div"),
    "squares": ("pow",),
    "average": ("mean",),
    "total": ("sum", "cumsum", "prod"),
    "limited": ("max", "min"),
    "largest": ("amax", "argmax"),
    "smallest": ("amin", "argmin"),
    "exponentials": ("exp",),
    "roots": ("sqrt", "rsqrt"),
    "logarithms": ("log",),
    "distances": ("abs",),
    "cosines": ("cos",),
    "sines": ("sin",),
    "positions": ("arange",),
    "angles": ("rotary_frequencies",),
    "selected": ("where", "pick", "gather", "take", "lookup"),
    "section": ("slice",),
    "padded": ("pad",),
    "pooled": ("pool", "max_pool", "avg_pool"),
    "rearranged": ("reshape", "rearrange", "transpose", "permute"),
    "repeated": ("repeat", "expand"),
}
"""Names for results, by the operations, functions and layers that make them."""

VIEWS = ("rearranged", "repeated", "section")
"""Names that say less than those of what is viewed."""

WORDS: dict[str, str] = {name: word for word, names in ROLES.items() for name in names}

RESULTS_OF_PARTS = {"topk": ("weights", "chosen"), "sort": ("ordered", "order"), "for": ("outputs",) * 9}
"""Names for the results of operations that have several."""


class ValueNames(NamedTuple):
    """Possible names for the values of a body: `outputs` have theirs, and `attended` are the operands of attention."""

    chains: Chains
    outputs: Mapping[Value, str]
    attended: Mapping[Value, tuple[str, ...]]

    def wanted(self, value: Value) -> list[str]:
        """Return names for a value, the best first."""
        chains = self.chains
        source = [*([self.outputs[value]] if self.outputs.get(value) else []), *value.names]
        users = [other for other in chains.values if value in chains.operands(other)]
        if value.op == "part" and users and chains.uses[value] == 1:
            source += users[0].names
        if value in self.attended:
            letter, word = self.attended[value]
            source = [*[name for name in source if _agrees(name, letter, word)], letter, word]
        else:
            source = [name for name in source if name not in self._reserved()]
        if value.dtype == "bool":
            source = ["mask", *source]
        stream = chains.stream(value)
        carried = stream.names if stream is not None and stream not in chains.called else []
        carried = [name for name in carried if name not in self._reserved()]
        return [*source, *_words(value.address), *carried, *self._made_by(value)]

    def _reserved(self) -> Collection[str]:
        return {name for names in self.attended.values() for name in names}

    def _made_by(self, value: Value) -> list[str]:
        """Return the name of the last layer in the chain of a value, and names for its role."""
        loops = [user for user in self.chains.values if isinstance(user, LoopValue) and value in user.operands]
        if any(value in loop.operands[: len(loop.carried)] for loop in loops):
            return ["hidden"]
        result = value.args[0] if value.op == "part" else value
        last = self.chains.last_layer(result) if isinstance(result, Value) else None
        names = _words(last.address) if last is not None and last is not value else []
        role = role_of_class(last.op) or role_of_address(last.address) if last is not None else None
        if value.op == "add" and role in SUMS:
            return [SUMS[role], *names]
        return [*names, *role_names(value)]


def role_names(value: Value) -> list[str]:
    """Return names for a value by what makes it."""
    if value.op == "part" and isinstance(source := value.args[0], Value):
        names = RESULTS_OF_PARTS.get(source.op, ())
        return [*names[value.integer("index") :][:1]]
    if value.op in WORDS:
        of_angles = any(operand.op == "rotary_frequencies" for operand in value.operands)
        viewed = value.operands[0] if WORDS[value.op] in VIEWS else None
        names = role_names(viewed) if viewed is not None and viewed.kind in ("ops", "std") else []
        is_bias = value.op == "where" and not any(operand.dtype == "real" for operand in value.operands)
        return [*names, "angles" if of_angles else "bias" if is_bias else WORDS[value.op]]
    return ["mask", "visible"] if value.dtype == "bool" else ["indices"] if value.dtype == "int" else []


def attended_names(chains: Chains) -> dict[Value, tuple[str, ...]]:
    """Return the letter and the word for the queries, keys and values of attention, and for what these are views of."""
    roles: dict[Value, set[tuple[str, ...]]] = {}
    for value in chains.values:
        operands = chains.flat(value)[:3] if value.op == "attention" else []
        for operand, names in zip(operands, ATTENDED, strict=False):
            while isinstance(operand, Value) and operand not in chains.called:
                roles.setdefault(operand, set()).add(names)
                tensors = [other for other in operand.operands if other.op != "tensor"]
                is_view = operand.op == "rotate" or (len(tensors) == 1 and operand.op != "part")
                is_view = is_view and not operand.is_module and chains.uses[tensors[0]] == 1
                operand = tensors[0] if is_view else None
    return {value: next(iter(names)) for value, names in roles.items() if len(names) == 1}


def _agrees(name: str, letter: str, word: str) -> bool:
    """Whether the source names a value for what attention does with it, such as `xq` or `query_layer`."""
    return any(part in (letter, f"x{letter}") or part.startswith(word[:4]) for part in name.lower().split("_"))


def _words(address: str) -> list[str]:
    """Return the last word of an address as a name, unless it is a letter."""
    words = [word for word in address.split(".") if not word.isdigit()][-1:]
    return [word for word in words if len(word) > 1]
