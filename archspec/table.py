"""A model's tensors, totals and modules as plain data: what counting needs, and what is kept between runs."""

# Without `from __future__ import annotations`, which would have NamedTuple compile each annotation at import.
from typing import Any, NamedTuple


class Tensor(NamedTuple):
    """A named parameter tensor of a model.

    `name` is its address, as in a checkpoint. `size` is its number of elements; `params` is the same, or 0 for a tensor
    that is counted under another name, `tied_to`. `role` is its label in the spec. `layer` is the address of the layer
    or block that declares it ("" for the model itself) and `type` the name of that definition.
    """

    name: str
    shape: tuple[int, ...]
    params: int
    size: int
    trainable: bool
    tied_to: str | None
    role: str | None
    layer: str
    type: str


class Buffer(NamedTuple):
    """A stored tensor that is not a parameter: its address and shape."""

    name: str
    shape: tuple[int, ...]


class ModuleRow(NamedTuple):
    """A layer or block: its address, the name of its definition, and `kind`: "layer" or "block"."""

    address: str
    type: str
    kind: str


class Params(NamedTuple):
    """Parameter counts; a tensor with several names is counted once. `trainable` + `frozen` = `total`."""

    total: int
    trainable: int
    frozen: int


class Table(NamedTuple):
    """Everything about a model that does not depend on the shapes of its inputs, in program order.

    `hyperparameters` are all, and `overrides` those that were set. `buffer_ties` names the buffer that another one is
    tied to. `unchecked` is the number of `expect` lines that were skipped, because there are overrides.
    """

    model: str
    hyperparameters: dict[str, Any]
    overrides: dict[str, Any]
    params: Params
    tensors: tuple[Tensor, ...]
    buffers: tuple[Buffer, ...]
    modules: tuple[ModuleRow, ...]
    buffer_ties: dict[str, str]
    unchecked: int = 0

    def to_data(self) -> list[Any]:
        """The table as lists and dictionaries, for JSON."""
        return list(self)

    @staticmethod
    def from_data(data: Any) -> "Table | None":
        """The table that `to_data` wrote; None if it is not one, or its sums do not hold."""
        try:
            model, hyperparameters, overrides, params, tensors, buffers, modules, ties, unchecked = data
            table = Table(
                model,
                dict(hyperparameters),
                dict(overrides),
                Params(*params),
                tuple([Tensor(name, tuple(shape), *rest) for name, shape, *rest in tensors]),
                tuple([Buffer(name, tuple(shape)) for name, shape in buffers]),
                tuple([ModuleRow(*row) for row in modules]),
                dict(ties),
                unchecked,
            )
            return table if table.is_sound() else None
        except (TypeError, ValueError):
            return None

    def is_sound(self) -> bool:
        """Whether every field is of its type, and the tensors add up to the totals."""
        total, trainable, frozen = self.params
        texts = [self.model, *(text for row in self.modules for text in row)]
        texts += [text for t in self.tensors for text in (t.name, t.layer, t.type)] + [b.name for b in self.buffers]
        texts += [text for t in self.tensors for text in (t.tied_to, t.role) if text is not None]
        texts += [text for tie in self.buffer_ties.items() for text in tie]
        numbers = [total, trainable, frozen, self.unchecked]
        numbers += [n for t in self.tensors for n in (t.params, t.size, *t.shape)] + [
            n for b in self.buffers for n in b.shape
        ]
        return (
            {type(text) for text in texts} == {str}
            and {type(number) for number in numbers} == {int}
            and {type(t.trainable) for t in self.tensors} <= {bool}
            and sum(t.params for t in self.tensors) == total == trainable + frozen
            and sum(t.params for t in self.tensors if t.trainable) == trainable
        )
