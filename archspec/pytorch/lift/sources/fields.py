"""Sizes in the fields of a configuration, and the kinds of layers that its lists name, with their rule."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TypeAlias, TypeGuard

from archspec.pytorch.lift.notation.conditions import Varying, conditions

_KINDS: tuple[tuple[str, str], ...] = (
    ("token", r"(token_id|token_index|token_ids|_start_id|_end_id)$"),
    (
        "kept",
        r"codebook|feat_extract|^num_labels$|adapter|nextn|every_n_|shared_layers|residual_layers|lstm_layers|positions?_buckets",
    ),
    ("width", r"upsample_groups$"),
    (
        "at_layer",
        r"(indexes|indices|idxs|hook_ids|extract_layers|dense_replace|max_window_layers|dense_layers|attention_blocks)$",
    ),
    ("rotary", r"^rotary_dim$"),
    ("layers", r"(^|_)(layers|n_layer|depths?)$|^(num_|n_)?(res_)?(blocks|levels|repeats)$"),
    ("groups", r"(kv|key_value)_heads?$|^(n_|num_)?kv$"),
    ("heads", r"(heads|n_head)$"),
    ("head", r"head_(dim|size)$|^d_kv$|^kv_channels$|^dim_head$|_head_dim$|(^|_)d_head$"),
    ("vocabulary", r"vocab_size$|^vocab$|vocab_size_per_layer_input$"),
    ("positions", r"(max_\w*positions?(_embeddings)?|n_positions|n_ctx|max_seq_len\w*|context_length)$"),
    ("experts", r"^(moe_)?(num_|n_)(local_|routed_)?experts$"),
    ("queries", r"num_queries$"),
    ("chosen", r"experts_per_tok(en)?$|^moe_(topk|k)$|^top_k$"),
    ("expert_groups", r"^n_group$"),
    ("chosen_groups", r"^topk_group$"),
    (
        "kept",
        r"image|img|spec_size|pos_emb_|patch|kernel|window|crop|chunk|bucket|stride|time|sampl|bins|block_size|pool_size|batch|mel|freq",
    ),
    (
        "hidden",
        r"(hidden_size(_per_layer_input)?|hidden_dim|d_model|n_embd|n_state|embed_dim|^dim|embedding_size|embedding_dim|width|projection_dim)s?$",
    ),
    ("width", r"(size|dim|dims|channels|units|n_inner|d_ff|rank|hidden|filters|inner|features|ffn)s?$"),
)
"""What a field is, by the first pattern that its name contains."""

ITEM = re.compile(r"_+[0-9]+$")
"""The number of an item of a list, behind the name of the list."""

_PATTERN = r"interval|period|pattern|every|freq|skip|sparse_step|dense_replace|full_attention|attn_layer|layer_types"
"""Parts of the names of fields that say that some layers are different."""

MAX_KINDS = 2
"""A loop has layers of so many kinds."""


MIN_VALUES = {
    "layers": 2,
    "heads": 3,
    "groups": 2,
    "head": 8,
    "rotary": 4,
    "vocabulary": 64,
    "positions": 41,
    "queries": 80,
    "hidden": 16,
    "width": 16,
}
"""Smaller values of these kinds stay as they are; those of others below 2."""


@cache
def kind_of(name: str) -> str:
    """Return what a field of this name is, or an item of a list, behind whose name is its number."""
    name = ITEM.sub("", name)
    return next((kind for kind, pattern in _KINDS if re.search(pattern, name)), "kept")


Fields: TypeAlias = "dict[str, object]"


def scopes_of(actual: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """Yield a configuration, and those inside of it."""
    return (scope for _, scope in named_scopes(actual))


def named_scopes(actual: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield what the names of the values of a configuration begin with, and the configuration; then those inside."""
    yield prefix, actual
    for name, value in actual.items():
        if is_configuration(value):
            yield from named_scopes(value, f"{prefix}{name.removesuffix('_config')}_")


def numbers_in(scope: Mapping[str, object]) -> list[tuple[str, int]]:
    return [(name, value) for name, value in scope.items() if is_integer(value)]


def lists_in(scope: Mapping[str, object]) -> list[tuple[str, list[int]]]:
    found = [(name, value) for name, value in scope.items() if is_list(value) and value]
    return [(name, value) for name, value in found if are_integers(value)]


def head_of(actual: Mapping[str, object]) -> int:
    """Return the size of a head: a field, or the width over the number of heads."""
    numbers = [(kind_of(name), value) for scope in scopes_of(actual) for name, value in numbers_in(scope)]
    kinds = dict(reversed(numbers))
    return kinds.get("head") or kinds.get("hidden", 0) // kinds.get("heads", 1)


def common_divisor(actual: Mapping[str, object], has_own_heads: bool) -> int:
    """Return the power of two that makes heads as small as they may be, or their groups as few."""
    sizes: list[int] = []
    for scope in scopes_of(actual):
        kinds = {kind_of(name): value for name, value in reversed(numbers_in(scope))}
        if has_own_heads:
            sizes += [kinds[kind] for kind in ("heads", "groups") if kinds.get(kind, 0) >= 2 * MIN_VALUES[kind]]
        else:
            sizes += [value for name, value in numbers_in(scope) if kind_of(name) == "head"]
            sizes += [kinds["hidden"] // kinds["heads"]] if kinds.get("heads") and "hidden" in kinds else []
    least = MIN_VALUES["groups" if has_own_heads else "head"]
    most = min([size // least for size in sizes if size >= 2 * least], default=least)
    return 2 ** (most.bit_length() - 1)


def rotary_part(actual: Mapping[str, object]) -> float:
    """Return the share of a head that has rotary positions."""
    scopes = [*scopes_of(actual)]
    rotary = [value for scope in scopes if are_fields(value := scope.get("rope_parameters"))]
    scopes += [*rotary, *[part for item in rotary for part in item.values() if are_fields(part)]]
    found = [scope.get(name) for scope in scopes for name in ("partial_rotary_factor", "rotary_pct")]
    head = head_of(actual)
    found += [
        value / head for scope in scopes for name, value in numbers_in(scope) if head and kind_of(name) == "rotary"
    ]
    return min([part for part in found if isinstance(part, float) and 0.1 <= part <= 1], default=1.0)


def rotary_share(actual: Mapping[str, object]) -> int:
    """Return the number that divides a head into its part with rotary positions and others of its size; 1 if the part
    is a fraction that is rounded to another size.
    """
    part, head = rotary_part(actual), head_of(actual)
    share = round(1 / part)
    return share if int(head * part) == head // share else 1


def rotary_unit(actual: Mapping[str, object], least: int) -> int:
    """Return the least even size of heads from an even `least` on of which the part with rotary positions is even."""
    half = rotary_part(actual) / 2
    return next((size for size in range(least, 3 * least, 2) if abs(size * half - round(size * half)) < 1e-9), least)


def has_sections(actual: Mapping[str, object]) -> bool:
    """Whether rotary positions are those of several axes."""
    rotary = [scope.get("rope_parameters") for scope in scopes_of(actual)]
    return any(are_fields(value) and "mrope_section" in value for value in rotary)


def numbers_of_groups(actual: Mapping[str, object]) -> Iterator[int]:
    """Yield numbers of groups, which divide widths."""
    for scope in scopes_of(actual):
        for name, value in numbers_in(scope):
            if name.endswith("_groups") and 1 < value <= 32:
                yield value


def are_fields(value: object) -> TypeGuard[Fields]:
    return isinstance(value, dict)


def is_configuration(value: object) -> TypeGuard[Fields]:
    return are_fields(value) and "model_type" in value


def is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def are_integers(value: Sequence[object]) -> TypeGuard[list[int]]:
    return all(is_integer(item) for item in value)


def has_patterns(fields: Mapping[str, object]) -> bool:
    """Whether layers may differ in a way that depends on their number."""
    if names_layers(fields):
        return True
    for scope in scopes_of(fields):
        counts = [value for name, value in numbers_in(scope) if kind_of(name) == "layers"]
        for name, value in scope.items():
            items = [*map(str, value)] if is_list(value) else []
            if len(items) in counts and len({*items}) > 1:
                return True
            if is_pattern(name) and value and not isinstance(value, list | str | float):
                return True
    return False


def is_pattern(name: str) -> bool:
    """Whether a field of this name says that some layers are different."""
    return re.search(_PATTERN, name) is not None


def names_layers(fields: Mapping[str, object]) -> bool:
    """Whether there is a list of the numbers of some layers."""
    return any(kind_of(name) == "at_layer" for scope in scopes_of(fields) for name, _ in lists_in(scope))


def shows_rule(kinds: Sequence[Hashable], few: int) -> bool:
    """Whether the condition on the index of a loop that distinguishes the first few layers is that of all layers.

    Also true without a rule to show: for layers that do not alternate, or that no condition distinguishes.
    """
    start = next(first for first in range(few) if len({*kinds[first:few]}) <= MAX_KINDS)
    some, every = kinds[start:few], kinds[start:]
    if len({*every}) > MAX_KINDS or not _alternates(every):
        return True
    values, others = [Varying(tuple([kind == every[0] for kind in part]), start) for part in (some, every)]
    if not any(others.follows(holds) for _, holds in conditions(others)):
        return True
    found = next((holds for _, holds in conditions(values) if values.follows(holds)), None)
    return _alternates(some) and found is not None and others.follows(found)


def _alternates(kinds: Sequence[Hashable]) -> bool:
    return 1 < len({*kinds}) <= sum([first != second for first, second in pairwise(kinds)])
