"""Lifting: the small configurations of an architecture, with the values that each proposal gives to fields."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import pytest

from archspec.pytorch.lift.sources import fields as of
from archspec.pytorch.lift.sources import fields as patterns
from archspec.pytorch.lift.sources.architecture import Architecture
from archspec.pytorch.lift.sources.fields import kind_of
from archspec.pytorch.lift.sources.proposals import CHOICES, LIGHT_SECOND_SIZES, PROPOSALS, SHALLOW, THIRD, Depths
from archspec.pytorch.lift.sources.shrinking import hidden_changes, merge_fields, shrink_fields, without_shrunk_lists
from archspec.pytorch.lift.sources.variations import (
    resize_and_relayer,
    separate_part_sizes,
    with_fewer_parameters,
    with_more_heads,
)

KINDS = ["local", "local", "full"] * 4

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "text": {
        "vocab_size": 30000,
        "hidden_size": 768,
        "embedding_size": 128,
        "intermediate_size": 3072,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "max_position_embeddings": 512,
        "max_source_positions": 1024,
        "max_few_positions": 3,
        "max_pair_positions": 2,
        "type_vocab_size": 2,
        "pad_token_id": 0,
        "eos_token_id": [29999, 7, "end"],
        "num_queries": 300,
        "conv_groups": 4,
        "rank": 768,
        "kernel_size": 31,
        "hidden_dropout": 0.1,
        "tied": True,
    },
    "kinds": {
        "hidden_size": 2048,
        "num_hidden_layers": 12,
        "layer_types": KINDS,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 256,
        "qk_rope_head_dim": 64,
        "rotary_dim": 64,
        "rope_parameters": {"partial_rotary_factor": 0.25, "mrope_section": [12, 12, 8], "odd_section": [1, 1, 1]},
        "swa_layers": {"0": {"num_attention_heads": 8}, "3": {"head_dim": 128}, "7": {"head_dim": 64}, "all": 3},
        "out_indices": [2, 5, 8, 11],
        "first_k_dense_replace": 2,
        "max_window_layers": 12,
    },
    "experts": {
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "n_routed_experts": 64,
        "num_experts_per_tok": 6,
        "n_group": 8,
        "topk_group": 3,
        "first_k_dense_replace": 1,
        "moe_intermediate_size": 512,
        "kv_lora_rank": 512,
        "dense_widths": [1024, 2048],
    },
    "parts": {
        "vocab_size": 300,
        "projection_dim": 512,
        "text_config": {
            "model_type": "text",
            "vocab_size": 32000,
            "bos_token_id": 31999,
            "hidden_size": 1024,
            "num_hidden_layers": 8,
            "num_attention_heads": 16,
            "num_key_value_heads": 4,
            "max_position_embeddings": 2048,
        },
        "vision_config": {
            "model_type": "vision",
            "hidden_size": 512,
            "text_hidden_size": 1024,
            "num_hidden_layers": 6,
            "num_attention_heads": 8,
            "num_key_value_heads": 2,
            "image_size": 224,
            "patch_size": 16,
            "out_hidden_size": 1024,
        },
    },
    "groups": {
        f"{name}_config": {
            "model_type": name,
            "hidden_size": 1536,
            "num_attention_heads": heads,
            "num_key_value_heads": groups,
            "rope_parameters": {"mrope_section": sections},
        }
        for name, heads, groups, sections in (
            ("a", 24, 12, [16, 8, 8]),
            ("b", 24, 6, [32]),
            ("c", 48, 4, [8, 4, 4]),
            ("d", 96, 6, [4, 2, 2]),
        )
    },
    "widths": {"hidden_size": 512, **{f"{letter}_dim": 512 for letter in "abcdefg"}, "head_dim": 64, "v_head_dim": 32},
    "stages": {
        "depths": [2, 2, 18, 2],
        "num_heads": [3, 6, 12, 24],
        "embed_dim": 96,
        "hidden_sizes": [64, 128, 320, 512],
        "num_layers": 4,
        "stage_names": ["stem", "stage1"],
        "num_groups": 32,
        "norm_groups": 8,
        "channels": [32, 32, 96],
    },
}


def changes(actual: Mapping[str, Any], found: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The values that differ from those of the actual configuration."""
    for name, value in found.items():
        own = actual.get(name)
        if of.is_configuration(own):
            yield from changes(own, value, f"{prefix}{name}.")
        elif value != own:
            yield f"{prefix}{name}={value}".replace(" ", "")


TURNS = {"first": CHOICES[0], "second": CHOICES[1], "apart": CHOICES[1]._replace(are_apart=True), "third": THIRD}
TURNS["lighter"] = CHOICES[1]._replace(
    scale=LIGHT_SECOND_SIZES[0], width=LIGHT_SECOND_SIZES[1], experts=LIGHT_SECOND_SIZES[2]
)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_small_configurations(name: str, golden: Callable[[str, str], None]) -> None:
    actual, found = CONFIGURATIONS[name], defaultdict[str, list[str]](list)
    for turn, choices in TURNS.items():
        for number, proposal in enumerate((*PROPOSALS, SHALLOW)):
            found["\n  ".join(changes(actual, shrink_fields(actual, proposal, choices)))].append(f"{turn} {number}")
    architecture = Architecture(name, actual, lambda fields: 1 / 0, lambda module, turn: iter(()))
    for vary in (separate_part_sizes, resize_and_relayer, with_more_heads, with_fewer_parameters):
        varied = vary(architecture)
        for turn, choices in zip(("first", "second"), varied.choices if varied is not None else (), strict=False):
            few = shrink_fields(actual, PROPOSALS[0], choices)
            found["\n  ".join(changes(actual, few))].append(f"{vary.__name__} {turn}")
    lines = [f"{', '.join(numbers)}\n  {changed}\n" for changed, numbers in found.items()]
    golden(f"lift/small/{name}.txt", "".join(lines))


NAMES = {
    "token": "eos_token_id image_token_index stop_token_ids decoder_start_id video_end_id",
    "kept": "num_codebooks feat_extract_layers num_labels adapter_layers num_nextn_predict_layers every_n_layers "
    "num_shared_layers residual_layers lstm_layers position_buckets positions_buckets hidden_dropout image_size "
    "spec_size pos_emb_height patch_size kernel_size window_size crop_size chunk_size num_buckets stride time_size "
    "sampling_dim bins block_size pool_size batch_size mel_dim freq_dim labels max_positions_count my_num_labels",
    "width": "upsample_groups intermediate_size ff_dim ff_dims in_channels units n_inner d_ff lora_rank hidden filters "
    "features ffn d_ffs",
    "at_layer": "global_attn_indexes out_indices idxs hook_ids extract_layers first_k_dense_replace max_window_layers "
    "dense_layers attention_blocks",
    "rotary": "rotary_dim",
    "layers": "num_hidden_layers layers n_layer depth decoder_depth",
    "groups": "num_key_value_heads kv_heads",
    "heads": "num_attention_heads n_head",
    "head": "head_dim head_size d_kv kv_channels dim_head v_head_dim d_head my_d_head",
    "vocabulary": "vocab_size vocab text_vocab_size vocab_size_per_layer_input",
    "positions": "max_position_embeddings n_positions n_ctx max_seq_len max_target_positions context_length",
    "experts": "num_experts moe_num_experts n_routed_experts num_local_experts",
    "queries": "num_queries",
    "chosen": "num_experts_per_tok num_experts_per_token moe_topk moe_k top_k",
    "expert_groups": "n_group",
    "chosen_groups": "topk_group",
    "hidden": "hidden_size hidden_size_per_layer_input d_model n_embd embed_dim hidden_sizes dim dims embedding_size "
    "projection_dim width n_state embed_dims",
}


@pytest.mark.parametrize("kind", NAMES)
def test_names_show_the_kinds_of_fields(kind: str) -> None:
    assert {name: kind_of(name) for name in NAMES[kind].split()} == dict.fromkeys(NAMES[kind].split(), kind)


INNER = {"model_type": "inner", "head_dim": 24, "sizes": [1, 2], "conv_groups": 33, "flag": True}
OUTER = {"hidden_size": 96, "heads": 8, "inner_config": INNER, "other": {"a": 5}, "n_groups": 32, "a_groups": 1}


def test_fields_of_a_configuration_and_those_inside_of_it() -> None:
    assert [*of.scopes_of(OUTER)] == [OUTER, INNER]
    assert of.numbers_in(OUTER) == [("hidden_size", 96), ("heads", 8), ("n_groups", 32), ("a_groups", 1)]
    assert of.lists_in({"a": [], "b": [1], "c": ["x", 1], "d": [True], "e": 3}) == [("b", [1])]
    assert [*of.numbers_of_groups(OUTER)] == [32]
    assert [*of.numbers_of_groups({"a_groups": 2, "groups": 4, "b_groups": 33})] == [2]


def test_the_size_of_a_head_is_a_field_or_a_quotient() -> None:
    assert of.head_of(OUTER) == 24
    assert of.head_of({"hidden_size": 96, "num_heads": 8, "other_heads": 4}) == 12
    assert of.head_of({"hidden_size": 96}) == 96
    assert of.head_of({"num_heads": 1}) == 0


@pytest.mark.parametrize(
    ("fields", "of_heads", "of_groups"),
    [
        ({}, 8, 2),
        ({"head_dim": 15}, 8, 2),
        ({"head_dim": 16}, 2, 2),
        ({"head_dim": 64}, 8, 2),
        ({"head_dim": 100}, 8, 2),
        ({"head_dim": 64, "v_head_dim": 32}, 4, 2),
        ({"hidden_size": 256, "num_heads": 8}, 4, 4),
        ({"hidden_size": 256, "num_heads": 8, "head_dim": 128}, 4, 4),
        ({"num_heads": 32, "kv_heads": 16}, 8, 8),
        ({"num_heads": 5, "kv_heads": 3}, 8, 2),
        ({"num_heads": 5, "kv_heads": 8}, 8, 4),
        ({"num_heads": 6, "kv_heads": 4}, 8, 2),
        ({"hidden_size": 512, "model": {"model_type": "a", "kv_heads": 64, "head_dim": 32}}, 4, 32),
    ],
)
def test_the_number_that_divides_all_sizes(fields: dict[str, Any], of_heads: int, of_groups: int) -> None:
    assert (of.common_divisor(fields, False), of.common_divisor(fields, True)) == (of_heads, of_groups)


@pytest.mark.parametrize(
    ("fields", "part", "share", "unit"),
    [
        ({}, 1.0, 1, 8),
        ({"partial_rotary_factor": 0.5}, 0.5, 2, 8),
        ({"rotary_pct": 0.25}, 0.25, 4, 8),
        ({"rotary_pct": 0.05}, 1.0, 1, 8),
        ({"rotary_pct": 0.1}, 0.1, 10, 20),
        ({"rotary_pct": 0.4, "head_dim": 40}, 0.4, 1, 10),
        ({"rotary_pct": 1.5}, 1.0, 1, 8),
        ({"rotary_pct": 2}, 1.0, 1, 8),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}, "head_dim": 64}, 0.5, 2, 8),
        ({"rope_parameters": {"full": {"partial_rotary_factor": 0.75}, "local": {"rotary_pct": 0.5}}}, 0.5, 2, 8),
        ({"rotary_dim": 16, "head_dim": 64}, 0.25, 4, 8),
        ({"rotary_dim": 16}, 1.0, 1, 8),
        ({"rotary_pct": 0.334, "head_dim": 192}, 0.334, 3, 8),
        ({"rotary_pct": 0.334, "head_dim": 1536}, 0.334, 1, 8),
        ({"rotary_pct": 0.3}, 0.3, 3, 20),
    ],
)
def test_the_part_of_a_head_with_rotary_positions(fields: dict[str, Any], part: float, share: int, unit: int) -> None:
    assert (of.rotary_part(fields), of.rotary_share(fields), of.rotary_unit(fields, 8)) == (part, share, unit)


def test_units_of_heads_are_even_and_not_much_larger() -> None:
    assert of.rotary_unit({"rotary_pct": 0.4}, 12) == 20
    assert of.rotary_unit({"rotary_pct": 0.1}, 6) == 6


def test_changes_are_merged_into_the_parts_that_they_are_of() -> None:
    found = merge_fields(
        {"a": 1, "b": 2, "inner": INNER, "other": {"c": 3}}, {"a": 4, "inner": {"flag": 0}, "other": {}}
    )
    assert found == {"a": 4, "b": 2, "inner": {**INNER, "flag": 0}, "other": {}}
    assert merge_fields({"a": 1}, {"b": {"c": 2}}) == {"a": 1, "b": {"c": 2}}


def test_fields_that_are_the_same_in_both() -> None:
    actual = {"a": 9, "b": 8, "c": 7, "sizes": [3], "out_indices": 4, "inner": INNER, "d": 5}
    first = {"a": 1, "b": 2, "c": 7, "sizes": [2], "out_indices": 2, "inner": {"head_dim": 5, "conv_groups": 3}}
    second = {"a": 1, "b": 3, "c": 7, "sizes": [2], "out_indices": 2, "inner": {"head_dim": 5, "conv_groups": 4}}
    assert hidden_changes(actual, first, second) == ["a", "head_dim"]
    assert hidden_changes({"a": 3}, {}, {"a": None}) == hidden_changes({"a": 3}, {"a": None}, {}) == []
    assert hidden_changes({"inner": INNER}, {"inner": None}, {"inner": None}) == ["inner"]
    assert hidden_changes({"inner": INNER}, {"inner": {}}, {"inner": None}) == []


def test_lists_with_other_sizes_are_left_out() -> None:
    actual = {"sizes": [8, 16], "widths": [8, 16], "short": [1, 2], "layers": [3], "eos_token_id": [4, 5], "x": 1}
    actual = {**actual, "inner": {"model_type": "a", "sizes": [3]}, "out_indices": [7]}
    changed = {"sizes": [2, 4], "widths": [8, 16], "short": [1], "layers": 2, "eos_token_id": [4, 3], "x": 2,
               "inner": {"sizes": [2]}, "out_indices": [2]}  # fmt: skip
    expected: dict[str, Any] = {**changed, "sizes": [], "inner": {"sizes": []}}
    assert without_shrunk_lists(actual, changed) == expected


@pytest.mark.parametrize(
    ("fields", "has_patterns"),
    [
        ({"num_layers": 3, "kinds": ["a", "b", "a"]}, True),
        ({"num_layers": 3, "kinds": ["a", "a", "a"]}, False),
        ({"num_layers": 3, "kinds": ["a", "b"]}, False),
        ({"kinds": ["a", "b"]}, False),
        ({"interval": 2}, True),
        ({"interval": 0}, False),
        ({"layer_types": ["a", "b"]}, False),
        ({"every": "x"}, False),
        ({"period": 0.5}, False),
        ({"model": {"model_type": "a", "skip": True}}, True),
        ({"other": 2}, False),
    ],
)
def test_patterns_of_layers(fields: dict[str, Any], has_patterns: bool) -> None:
    assert patterns.has_patterns(fields) == has_patterns
    assert patterns.has_patterns({"sliding_window_pattern": 2})


FEW = {
    "aaaaaaaaa": [3, 3, 4, 4, 6, 3, 6, 4],
    "aabaabaabaab": [7, 7, 8, 8, 7, 7, 8, 8],
    "abababababab": [5, 6, 6, 8, 6, 6, 6, 8],
    "abbbbbbbbbbb": [4, 4, 5, 5, 5, 4, 6, 5],
    "aaaaaaaaaaab": [12, 12, 12, 12, 12, 12, 12, 12],
    "abcabcabcabc": [7, 7, 8, 8, 7, 7, 8, 8],
    "aaaabb": [6, 6, 6, 6, 6, 6, 6, 6],
    "aabbbb": [5, 5, 6, 6, 5, 5, 6, 6],
    "aaabbaabb": [6, 6, 7, 7, 6, 6, 7, 7],
    "ababab": [5, 5, 6, 6, 6, 6, 6, 6],
    "aab": [3, 3, 3, 3, 3, 3, 3, 3],
    "aaaaaabbbbbb": [8, 8, 9, 9, 8, 8, 9, 9],
    "ababababaaaaa": [5, 5, 6, 12, 6, 5, 6, 12],
    "ababababbbbbb": [9, 6, 12, 12, 9, 6, 12, 12],
    "abaaaabaaaa": [4, 4, 6, 6, 5, 4, 6, 6],
    "aabbaa": [6, 6, 6, 6, 6, 6, 6, 6],
    "aabbbaa": [5, 5, 6, 6, 6, 6, 6, 6],
    "abbbb": [4, 4, 5, 5, 5, 5, 5, 5],
    "abababaaaabab": [8, 6, 9, 11, 8, 6, 9, 11],
    "aaaaaaabaaaaaaabaaaaaaab": [10, 10, 11, 11, 10, 10, 11, 11],
}
"""Kinds of layers, and how many show them: at least 3 or 6, the first or the second time, ending with any or the last
kind.
"""


@pytest.mark.parametrize("kinds", FEW)
def test_few_layers_show_all_kinds(kinds: str) -> None:
    options = product((3, 6), (False, True), (False, True))
    depths = [Depths({"kinds": [*kinds]}).small(len(kinds), *option) for option in options]
    assert depths == FEW[kinds]


def test_other_layers_have_other_numbers() -> None:
    lists = {"a": [*"ab"] * 6, "b": {"model_type": "b", "kinds": [*"abbb"] * 4}, "c": [*"abbb"] * 5, "d": [*"abbb"] * 6}
    depths = Depths(lists)
    assert [depths.small(count, 3, False, False) for count in (12, 16, 20, 24, 16, 8)] == [5, 7, 11, 15, 9, 3]
    depths = Depths(lists)
    assert [depths.small(count, 3, True, False) for count in (12, 16, 20, 24, 16, 8)] == [6, 8, 12, 16, 10, 3]
    depths = Depths({"a": [*"bbbbba"] * 4})
    assert [depths.small(24, 3, False, False) for _ in range(3)] == [8, 9, 10]
    assert [depths.small(24, 3, False, True) for _ in range(2)] == [12, 12]
    several = Depths({"a": [*"ab"] * 6, "b": [*"aab"] * 4}), Depths({"b": [*"aab"] * 4, "a": [*"ab"] * 6})
    assert [depths.small(12, 3, False, False) for depths in several] == [7, 7]
    assert Depths({}).small(2, 3, False, False) == 3
    kinds = ["full", *["full" if turn % 6 == 5 else "local" for turn in range(1, 48)]]
    depths = Depths({"kinds": kinds, "ends": ["dense", *["sparse"] * 47]})
    assert [depths.small(48, 3, is_second, False) for is_second in (False, True)] == [8, 11]


@pytest.mark.parametrize(
    ("name", "least", "few"),
    [
        ("num_layers", 2, 4),
        ("num_heads", 3, 8),
        ("kv_heads", 2, 4),
        ("head_dim", 8, 83),
        ("rotary_dim", 4, 24),
        ("vocab_size", 64, 113),
        ("num_queries", 80, 68),
        ("hidden_size", 16, 24),
        ("intermediate_size", 16, 168),
        ("num_experts", 2, 36),
        ("max_positions", 41, 68),
    ],
)
def test_small_values_stay(name: str, least: int, few: int) -> None:
    found = [shrink_fields({name: value}, PROPOSALS[0], CHOICES[1])[name] for value in (least - 1, least)]
    assert found == [least - 1 + (name == "max_positions"), few]


def test_fields_that_follow_from_others() -> None:
    def first(**fields: Any) -> dict[str, Any]:
        return shrink_fields(fields, PROPOSALS[0], CHOICES[0])

    assert {first(num_layers=9, **{name: ["x"]})[name] for name in ("stage_names", "out_features", "out_indices")} == {
        None
    }
    assert first(num_layers=3, stage_names=["x"])["stage_names"] == ["x"]
    assert [first(num_layers=9, first_k_dense_replace=first_ones)["num_layers"] for first_ones in (1, 2)] == [3, 4]
    assert first(num_layers=12, decoder_layers=6, extract_layers=[12, 6])["extract_layers"] == [3, 2]
    assert first(eos_token_id=5)["eos_token_id"] == 5
    assert first(rope_parameters={"mrope_section": [12]}) == {"rope_parameters": {"mrope_section": [12]}}
    assert first(vocab_size=63, eos_token_id=62)["eos_token_id"] == 62
    assert first(rope_parameters={}, head_dim=64, qk_rope_head_dim=32)["qk_rope_head_dim"] == 41
    parts = {"partial_rotary_factor": 0.5}
    assert first(rope_parameters=parts, head_dim=64, qk_rope_head_dim=32)["qk_rope_head_dim"] == 13
    assert first(rope_parameters=parts, qk_rope_head_dim=32)["qk_rope_head_dim"] == 26
    widths = {"widths": [512, 1024]}
    assert shrink_fields(widths, PROPOSALS[0], CHOICES[2]) == widths


@pytest.mark.parametrize(
    ("name", "few"), [("num_heads", 4), ("hidden_sizes", 4), ("patch_sizes", 4), ("channels", 3), ("labels", 4)]
)
def test_stages_that_lists_have_stay(name: str, few: int) -> None:
    assert shrink_fields({"num_layers": 4, name: [2, 2, 2, 2]}, PROPOSALS[0], CHOICES[0])["num_layers"] == few


@pytest.mark.parametrize(
    ("value", "few"),
    [
        ({"num_layers": 4, "values": [1, 2, 3, 4]}, [1, 2, 3, 4]),
        ({"num_layers": 4, "values": ["a"] * 4}, ["a"] * 3),
        ({"num_layers": 3, "values": ["a"] * 3}, ["a"] * 3),
        ({"num_layers": 4, "layer_channels": [2, 2, 2, 2]}, [2, 2, 2]),
        ({"num_layers": 4, "layer_values": [1, 2, 3]}, [1, 2, 3]),
        ({"depths": [3, 4, 6, 3]}, [3, 4, 3, 3]),
        ({"block_repeats": [1, 2, 9]}, [1, 2, 3]),
        ({"num_blocks": [9, 9, 9]}, [3, 4, 3]),
        ({"num_blocks_of": [9, 9, 9]}, [9, 9, 9]),
        ({"widths": [32, 64, 160]}, [16, 32, 80]),
        ({"widths": [31, 62]}, [31, 62]),
        ({"widths": [64, 96, 320]}, [16, 24, 80]),
        ({"widths": [512, 1024]}, [16, 32]),
        ({"widths": [66, 130]}, [33, 65]),
        ({"widths": [60, 120]}, [30, 60]),
        ({"widths": []}, []),
        ({"widths": [64, 64.5]}, [64, 64.5]),
        ({"labels": [512, 1024]}, [512, 1024]),
    ],
)
def test_lists_of_small_configurations(value: dict[str, Any], few: list[Any]) -> None:
    assert [*shrink_fields(value, PROPOSALS[0], CHOICES[0]).values()][-1] == few
