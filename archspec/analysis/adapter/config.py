"""Reading of `adapter_config.json`: what it says of its adapter, and of the base model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from re import _constants, _parser  # pyright: ignore  # the only way to see what a pattern consists of
from typing import NotRequired, TypedDict, cast

from archspec.core.diagnostics import Report, Source, Span, decode, make_error, read_bytes, suggest
from archspec.core.record import Record, is_tuple
from archspec.core.resources import specs_root
from archspec.formats.configs.configuration import MAX_CONFIGURATION_BYTES
from archspec.formats.configs.family import read_adapter_type
from archspec.formats.configs.read import Member, read_json
from archspec.formats.configs.settings import Settings

# Regular expressions of untrusted configurations.

MAX_PATTERN_LENGTH = 4000
LONG_REPEAT = 64


def compiled(pattern: str, at: Span | None = None) -> re.Pattern[str]:
    """Compile a pattern. Raises ArchError for an invalid one, and for one that could take exponential time."""
    shown = pattern if len(pattern) <= 60 else f"{pattern[:57]}..."
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise make_error("budget", f"pattern is too long: the limit is {MAX_PATTERN_LENGTH:,} characters", at)
    try:
        found = re.compile(pattern)
        is_nested = _has_nested_repeats(_parser.parse(pattern))  # pyright: ignore
    except (re.error, OverflowError, RecursionError) as problem:
        raise make_error("syntax", f"invalid regular expression `{shown}`: {problem}", at) from None
    if is_nested:
        message = f"regular expression `{shown}` repeats a repetition, which can take exponential time"
        raise make_error("budget", message, at, help="write it without nested `*` or `+`")
    return found


_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)  # pyright: ignore


def _has_nested_repeats(parts: object, inside: bool = False) -> bool:
    """Whether an unbounded repetition contains another one."""
    parts = getattr(parts, "data", parts)
    if not isinstance(parts, list | tuple):
        return False
    for part in cast("Sequence[object]", parts):
        pair = part if is_tuple(part) else ()
        if len(pair) == 2 and pair[0] in _REPEATS:
            _, most, body = cast("tuple[int, int, object]", pair[1])
            is_unbounded = most > LONG_REPEAT
            if (inside and is_unbounded) or _has_nested_repeats(body, inside or is_unbounded):
                return True
        elif _has_nested_repeats(part, inside):
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
"""The class of `transformers` for each type of task: how its name ends."""

_HEADS = {
    "SEQ_CLS": ("classifier", "score"),
    "TOKEN_CLS": ("classifier", "score"),
    "QUESTION_ANS": ("qa_outputs",),
}
"""The modules that are trained in full with these types of tasks."""


class Lora(Record):
    """The configuration of a LoRA adapter.

    `targets` and `excluded` are a regular expression, or names with which those of modules end. `layers` are the
    indices of the layers to adapt in the stacks named `stacks`, or in any. `ranks` has other ranks by pattern. `saved`
    are names of modules of which a copy is trained, and modules in those named `guarded` are not adapted. `bias` is
    "none", "all" or "lora_only".
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
        found = (rank for pattern, rank in self.ranks.items() if re.match(rf"(.*\.)?({pattern})$", name))
        return next(found, self.rank)


class _Given(TypedDict):
    """The values of the fields, by what they set."""

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
    """Read the configuration of an adapter; also return the fields that were ignored. Raises ArchError."""
    report = Report()
    data = read_bytes(path, label, report, largest=MAX_CONFIGURATION_BYTES)
    text = decode(data, label, report, largest=MAX_CONFIGURATION_BYTES) if data is not None else None
    report.check()
    root = read_json(Source(label, text or ""))
    if not isinstance(root.plain, dict):
        raise make_error("wrong-kind", f"expected a JSON object, found {root.written()}", root.span)
    members = dict(root.plain)
    _check_type(members.pop("peft_type", None), label)
    settings = Settings(read_adapter_type(specs_root(), "LORA", {}), "", report, ignore)
    settings.take(members, "")
    settings.complete()
    report.check()
    given = cast("_Given", {name: setting.value for name, setting in settings.found.items()})
    lora = _lora(given, members.get("target_modules"), label)
    for name in ("target_modules", "exclude_modules", "rank_pattern", "layers_pattern", "modules_to_save"):
        for pattern in _patterns(name, members.get(name)):
            compiled(pattern, members[name].value.span)
    return lora, settings.skipped


def _check_type(member: Member | None, label: str) -> None:
    if member is None:
        raise make_error("missing-argument", f"{label}: missing field `peft_type`")
    stated = member.value.plain
    if stated != "LORA":
        message = f"adapters of the type {member.value.written()} are not supported"
        help = suggest(str(stated), ["LORA"]) or 'only LoRA is supported: `"peft_type": "LORA"`'
        raise make_error("unsupported", message, member.value.span, help=help)


def _lora(given: _Given, targets: Member | None, label: str) -> Lora:
    adapted, stacks = given.get("targets"), given.get("stacks")
    if not adapted:
        span = targets and targets.value.span
        help = "list the modules, as peft does in the configurations that it saves"
        raise make_error("missing-argument", f"{label}: missing value of `target_modules`", span, help=help)
    task = given.get("task")
    if task is not None and task not in TASKS:
        help = suggest(task, [*TASKS]) or f"supported: {', '.join(TASKS)}"
        raise make_error("unsupported", f"{label}: unknown `task_type` `{task:.80}`", help=help)
    if isinstance(adapted, str):
        what = "`all-linear`" if adapted.lower() == "all-linear" else "a pattern of `target_modules`"
        for name, field in (("layers", "layers_to_transform"), ("stacks", "layers_pattern")):
            if given.get(name) is not None:
                raise make_error("unsupported", f"{label}: `{field}` cannot be combined with {what}")
    if given.get("stacks") and given.get("layers") is None:
        raise make_error("unsupported", f"{label}: `layers_pattern` has no effect without `layers_to_transform`")
    if given["dora"] and given["lora_bias"]:
        raise make_error("unsupported", f"{label}: `use_dora` cannot be combined with `lora_bias`")
    layers = given.get("layers")
    saved, heads = tuple(given.get("saved") or ()), _HEADS.get(task or "", ())
    return Lora(
        base=given.get("base"),
        task=task,
        rank=given["rank"],
        targets=_names(adapted),
        excluded=_names(given.get("excluded") or ()),
        layers=(layers,) if isinstance(layers, int) else tuple(layers or ()),
        stacks=(stacks,) if isinstance(stacks, str) else tuple(stacks or ()),
        ranks=given.get("ranks") or {},
        saved=(*saved, *heads),
        guarded=(*saved, *heads) if task == "SEQ_CLS" else saved,
        bias=given["bias"],
        dora=given["dora"],
        lora_bias=given["lora_bias"],
    )


def _names(given: str | Sequence[str]) -> str | tuple[str, ...]:
    return given if isinstance(given, str) else tuple(given)


def _patterns(field: str, member: Member | None) -> Iterator[str]:
    """Yield the regular expressions in the value of a field."""
    value = member.value.data() if member is not None else None
    if isinstance(value, str) and value.lower() != "all-linear":
        yield value
    elif isinstance(value, dict) or (isinstance(value, list) and field in ("layers_pattern", "modules_to_save")):
        yield from value
