"""The kinds of heads for which `transformers` has automatic classes and a loss, recognized by what a model computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from archspec.analysis.cost.steps import attention_direction
from archspec.ir.module import Type
from archspec.pipeline.model import Model, get_compilation


class Head(NamedTuple):
    """A kind of head: its automatic class, the inputs with labels, and the function and arguments of the loss."""

    auto_class: str
    labels: tuple[str, ...]
    function: str
    arguments: tuple[str, ...]
    has_label_names: bool = False


_EACH_TOKEN = ("found.logits.flatten(0, 1)", "labels.flatten()")

WORDS = Head("AutoModelForMaskedLM", ("labels",), "F.cross_entropy", _EACH_TOKEN)
NEXT_WORDS = Head(
    "AutoModelForCausalLM", ("labels",), "ForCausalLMLoss", ("found.logits", "labels", "found.logits.shape[-1]")
)
TOKENS = Head("AutoModelForTokenClassification", ("labels",), "F.cross_entropy", _EACH_TOKEN, True)
TEXTS = Head(
    "AutoModelForSequenceClassification",
    ("labels",),
    "ForSequenceClassificationLoss",
    ("labels", "found.logits", "self.config"),
    True,
)
ANSWERS = Head(
    "AutoModelForQuestionAnswering",
    ("start_positions", "end_positions"),
    "ForQuestionAnsweringLoss",
    ("found.start_logits", "found.end_logits", "start_positions", "end_positions"),
)


def head_of(model: Model) -> Head | None:
    """Return the kind of head that a model has on a text, `input_ids`; None if it has no head of a known kind.

    It has one if tensors have the role `head`, and an output `logits`, or `start_logits` and `end_logits`, has the
    shape of that kind.
    """
    ids, outputs = model.inputs.get("input_ids"), model.outputs
    if ids is None or ids.dtype != "int" or len(ids.shape) != 2 or all(t.role != "head" for t in model.tensors):
        return None
    if {"start_logits", "end_logits"} <= outputs.keys():
        found = ANSWERS if outputs["start_logits"].shape == outputs["end_logits"].shape == ids.shape else None
    else:
        found = _scores(model, ids, outputs.get("logits"))
    return found if found is not None and not {"loss", *found.labels} & {*model.inputs, *outputs} else None


def _scores(model: Model, ids: Type, logits: Type | None) -> Head | None:
    if logits is None or not logits.shape or not isinstance(logits.shape[-1], int):
        return None
    if logits.shape[:-1] == ids.shape[:1]:
        return TEXTS
    if logits.shape[:-1] != ids.shape:
        return None
    table = word_table(model)
    if table is None or next(t.shape[0] for t in model.tensors if t.name == table) != logits.shape[-1]:
        return TOKENS
    return {"causal": NEXT_WORDS, "both": WORDS}.get(
        attention_direction(get_compilation(model).body, str(ids.shape[1]))
    )


def word_table(model: Model) -> str | None:
    """Return the tensor with the embeddings of words, in which `input_ids` are looked up; None if there is none."""
    graph = model.graph(level="op")
    for node in graph.successors("input:input_ids") if "input:input_ids" in graph else ():
        if graph.nodes[node]["type"] == "embedding":
            tables: list[Sequence[str]] = [graph.nodes[other].get("tensors", ()) for other in graph.predecessors(node)]
            return next((name for names in tables for name in names), None)
    return None
