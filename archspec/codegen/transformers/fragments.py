"""Fragments of the files that `transformers` loads: the parts that no model changes, and values as code."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.codegen.python.layout import WIDTH, double_quoted
from archspec.ir.table import PlainValue

PRETRAINED = '''

class Pretrained(PreTrainedModel):
    """What a network inherits; `config` is set before its constructor is called."""

    def __init__(self) -> None:
        super().__init__(self.config)

    def post_init(self) -> None:
        """Note whether the constructor initialized the tensors."""
        self._is_filled = not any(tensor.is_meta for tensor in self._tensors().values())
        super().post_init()

    @torch.no_grad()
    def initialize_weights(self) -> None:
        """Give tensors that no checkpoint filled the values that they have in a new network."""
        if not self._is_filled:
            self._is_filled = True
            missing = {
                name: tensor
                for name, tensor in self._tensors().items()
                if not getattr(tensor, "_is_hf_initialized", False)
            }
            new = type(self)(self.config)._tensors() if missing else {}
            for name, tensor in missing.items():
                tensor.copy_(new[name])

    def _tensors(self) -> dict[str, Tensor]:
        parameters = dict(self.named_parameters(remove_duplicate=False))
        return parameters | dict(self.named_buffers(remove_duplicate=False))'''

GENERATION = '''
    def prepare_inputs_for_generation(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        **settings: object,
    ) -> dict[str, Tensor]:
        """All words so far: there is no cache."""
        if attention_mask is not None and not attention_mask.all():
            raise ValueError("texts that are continued together differ in length")
        return {"input_ids": input_ids}'''

SWITCH = [
    "        for module in self.modules():",
    "            if type(module) in CHECKPOINTED:",
    "                module.__class__ = CHECKPOINTED[type(module)]",
]


def collection(head: str, items: Sequence[str], tail: str, indent: int) -> list[str]:
    """A list or dictionary in one line, or with a line for each item."""
    margin = "    " * indent
    line = f"{margin}{head}{', '.join(items)}{tail}"
    if len(line) <= WIDTH:
        return [line]
    return [margin + head, *[f"{margin}    {item}," for item in items], margin + tail]


def imported(file: str, what: str) -> list[str]:
    line = f"from .{file} import {what}"
    return [line] if len(line) <= WIDTH else [f"from .{file} import (", f"    {what},", ")"]


def parameter(name: str, value: PlainValue) -> str:
    if isinstance(value, bool | int | float | str):
        annotation = value.__class__.__name__
    else:
        annotation = "int | None" if value is None else "tuple[Any, ...]"
    return f"{name}: {annotation} = {code(value)}"


def argument(key: str, value: PlainValue) -> str:
    return f"tuple(self.{key})" if isinstance(value, Sequence) and not isinstance(value, str) else f"self.{key}"


def code(value: PlainValue) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Sequence):
        items = [code(item) for item in value]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    return repr(value)


def quoted(text: str) -> str:
    return double_quoted(repr(text))
