"""The reader of `adapter_config.json`: the configuration of an adapter and its base model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from re import _constants, _parser  # pyright: ignore  # `re` has no public parser of patterns
from typing import NotRequired, TypedDict, cast

from archspec.core.diagnostics import Report, Source, Span, decode, make_error, read_bytes, suggest
from archspec.core.record import Record, is_tuple
from archspec.core.resources import specs_root
from archspec.formats.configs.configuration import MAX_CONFIGURATION_BYTES
from archspec.formats.configs.family import read_adapter_type
from archspec.formats.configs.settings import Settings
from archspec.formats.strict_json import Member, read_json

# Regular expressions of untrusted configurations.

MAX_PATTERN_LENGTH = 4000
MAX_BOUNDED_REPEATS = 64


def compile_pattern(pattern: str, span: Span | None = None) -> re.Pattern[str]:
    """Compile a pattern. Raises ArchError if it is invalid or could take exponential time."""
    excerpt = pattern if len(pattern) <= 60 else f"{pattern[:57]}..."
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise make_error("budget", f"pattern is too long: the limit is {MAX_PATTERN_LENGTH:,} characters", span)
    try:
        regex = re.compile(pattern)
        is_nested = _has_nested_repeats(_parser.parse(pattern))  # pyright: ignore
    except (re.error, OverflowError, RecursionError) as problem:
        raise make_error("syntax", f"invalid regular expression `{excerpt}`: {problem}", span) from None
    if is_nested:
        message = f"regular expression `{excerpt}` repeats a repetition, which can take exponential time"
        raise make_error("budget", message, span, help="write it without nested `*` or `+`")
    return regex


_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)  # pyright: ignore


def _has_nested_repeats(parts: object, in_repeat: bool = False) -> bool:
    """Whether an unbounded repetition contains another unbounded repetition."""
    parts = getattr(parts, "data", parts)
    if not isinstance(parts, list | tuple):
        return False
    for part in cast("Sequence[object]", parts):
        pair = part if is_tuple(part) else ()
        if len(pair) == 2 and pair[0] in _REPEATS:
            _, maximum, body = cast("tuple[int, int, object]", pair[1])
            is_unbounded = maximum > MAX_BOUNDED_REPEATS
            if (in_repeat and is_unbounded) or _has_nested_repeats(body, in_repeat or is_unbounded):
                return True
        elif _has_nested_repeats(part, in_repeat):
            return True
    return False


TASKS = {
    "CAUSAL_LM": "ForCausalLM",
    "SEQ_2_SEQ_LM": "ForConditionalGeneration",
    "SEQ_CLS": "ForSequenceClassification",
    "TOKEN_CLS": "ForTokenClassification",
    "QUESTION_ANS": "ForQuestionAnswering",
    "FEATURE_EXTRACTION": "Model",
}
"""The ends of the class names of `transformers` by type of task."""

_TRAINED_HEADS = {
    "SEQ_CLS": ("classifier", "score"),
    "TOKEN_CLS": ("classifier", "score"),
    "QUESTION_ANS": ("qa_outputs",),
}
"""The modules that are trained in full, by type of task."""


class Lora(Record):
    """The configuration of a LoRA adapter.

    `targets` and `excluded` are a regular expression, or ends of module names. `layers` are the indices of the layers
    to adapt in the stacks named `stacks`, or in any stack. `ranks` overrides `rank` by pattern. `saved` are ends of the
    names of modules of which a copy is trained; modules in those named `guarded` are not adapted. `bias` is "none",
    "all" or "lora_only".
    """

    base: str | None
    task: str | None
    rank: int
    targets: str | tuple[str, ...]
    excluded: str | tuple[str, ...]
    layers: tuple[int, ...]
    stacks: tuple[str, ...]
    ranks: dict[str, int]
    saved: tuple[str, ...]
    guarded: tuple[str, ...]
    bias: str
    dora: bool
    lora_bias: bool

    def rank_of(self, name: str) -> int:
        """Return the rank for a module."""
        ranks = (rank for pattern, rank in self.ranks.items() if re.match(rf"(.*\.)?({pattern})$", name))
        return next(ranks, self.rank)


class _LoraFields(TypedDict):
    """The values of the fields of a configuration, by the names that its description assigns to them."""

    base: NotRequired[str | None]
    task: NotRequired[str | None]
    rank: int
    targets: NotRequired[str | list[str] | None]
    excluded: NotRequired[str | list[str] | None]
    layers: NotRequired[int | list[int] | None]
    stacks: NotRequired[str | list[str] | None]
    ranks: NotRequired[dict[str, int] | None]
    saved: NotRequired[list[str] | None]
    bias: str
    dora: bool
    lora_bias: bool


def read_config(path: str, label: str, ignore: Sequence[str] = ()) -> tuple[Lora, list[str]]:
    """Read the configuration of an adapter, and return it with the ignored fields. Raises ArchError."""
    report = Report()
    data = read_bytes(path, label, report, max_bytes=MAX_CONFIGURATION_BYTES)
    text = decode(data, label, report, max_bytes=MAX_CONFIGURATION_BYTES) if data is not None else None
    report.check()
    root = read_json(Source(label, text or ""))
    if not isinstance(root.plain, dict):
        raise make_error("wrong-kind", f"expected a JSON object, found {root.written()}", root.span)
    members = dict(root.plain)
    _check_type(members.pop("peft_type", None), label)
    settings = Settings(read_adapter_type(specs_root(), "LORA", {}), "", report, ignore)
    settings.process(members, "")
    settings.complete()
    report.check()
    fields = cast("_LoraFields", {name: setting.value for name, setting in settings.hyperparameters.items()})
    lora = _build_lora(fields, members.get("target_modules"), label)
    for name in ("target_modules", "exclude_modules", "rank_pattern", "layers_pattern", "modules_to_save"):
        for pattern in _iter_patterns(name, members.get(name)):
            compile_pattern(pattern, members[name].value.span)
    return lora, settings.skipped


def _check_type(member: Member | None, label: str) -> None:
    if member is None:
        raise make_error("missing-argument", f"{label}: missing field `peft_type`")
    stated = member.value.plain
    if stated != "LORA":
        message = f"unsupported adapter type {member.value.written()}"
        help = suggest(str(stated), ["LORA"]) or 'supported: `"peft_type": "LORA"`'
        raise make_error("unsupported", message, member.value.span, help=help)


def _build_lora(fields: _LoraFields, targets: Member | None, label: str) -> Lora:
    adapted, stacks = fields.get("targets"), fields.get("stacks")
    if not adapted:
        span = targets and targets.value.span
        help = "list the modules, as peft does in saved configurations"
        raise make_error("missing-argument", f"{label}: missing value of `target_modules`", span, help=help)
    task = fields.get("task")
    if task is not None and task not in TASKS:
        help = suggest(task, [*TASKS]) or f"supported: {', '.join(TASKS)}"
        raise make_error("unsupported", f"{label}: unknown `task_type` `{task:.80}`", help=help)
    if isinstance(adapted, str):
        what = "`all-linear`" if adapted.lower() == "all-linear" else "a pattern of `target_modules`"
        for name, field in (("layers", "layers_to_transform"), ("stacks", "layers_pattern")):
            if fields.get(name) is not None:
                raise make_error("unsupported", f"{label}: `{field}` cannot be combined with {what}")
    if fields.get("stacks") and fields.get("layers") is None:
        raise make_error("unsupported", f"{label}: `layers_pattern` has no effect without `layers_to_transform`")
    if fields["dora"] and fields["lora_bias"]:
        raise make_error("unsupported", f"{label}: `use_dora` cannot be combined with `lora_bias`")
    layers = fields.get("layers")
    saved, heads = tuple(fields.get("saved") or ()), _TRAINED_HEADS.get(task or "", ())
    return Lora(
        base=fields.get("base"),
        task=task,
        rank=fields["rank"],
        targets=_as_names(adapted),
        excluded=_as_names(fields.get("excluded") or ()),
        layers=(layers,) if isinstance(layers, int) else tuple(layers or ()),
        stacks=(stacks,) if isinstance(stacks, str) else tuple(stacks or ()),
        ranks=fields.get("ranks") or {},
        saved=(*saved, *heads),
        guarded=(*saved, *heads) if task == "SEQ_CLS" else saved,
        bias=fields["bias"],
        dora=fields["dora"],
        lora_bias=fields["lora_bias"],
    )


def _as_names(names: str | Sequence[str]) -> str | tuple[str, ...]:
    return names if isinstance(names, str) else tuple(names)


def _iter_patterns(field: str, member: Member | None) -> Iterator[str]:
    """Yield the regular expressions in the value of a field."""
    value = member.value.data() if member is not None else None
    if isinstance(value, str) and value.lower() != "all-linear":
        yield value
    elif isinstance(value, dict) or (isinstance(value, list) and field in ("layers_pattern", "modules_to_save")):
        yield from value
