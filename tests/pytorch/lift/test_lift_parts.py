"""The parts of `archspec lift` that need no PyTorch: sizes as expressions, patterns of axes, names, runs, gaps."""

import pytest

from archspec import ArchError
from archspec.core.algebra import symbol
from archspec.pytorch.lift.api import as_refusal
from archspec.pytorch.lift.definitions.runs import address_pattern
from archspec.pytorch.lift.notation.conditions import Varying, branches_of, conditions, is_regular
from archspec.pytorch.lift.notation.names import Names, definition_names, role_statements
from archspec.pytorch.lift.notation.notation import quote_address
from archspec.pytorch.lift.notation.templates import Definition, Gaps, Statement, Template, fill_gaps
from archspec.pytorch.lift.sizes.expressions import Expressions
from archspec.pytorch.lift.sizes.sizes import Sizes
from archspec.pytorch.lift.sources.proposals import CHOICES, PROPOSALS
from archspec.pytorch.lift.sources.shrinking import shrink_fields
from archspec.pytorch.lift.statements.program import LiftedProgram
from archspec.pytorch.lift.values.views import Layout, pattern
from archspec.pytorch.values.arguments import UntranslatableError

BATCH, SEQ = symbol("batch"), symbol("seq")

FIELDS = {
    "hidden_size": (48, 60),
    "num_attention_heads": (4, 6),
    "num_key_value_heads": (2, 3),
    "head_dim": (14, 22),
    "intermediate_size": (80, 88),
    "image_size": (24, 35),
    "patch_size": (4, 5),
    "num_frames": (24, 20),
    "tubelet_size": (3, 5),
    "eps": (1e-6, 2e-6),
}


@pytest.mark.parametrize(
    ("pair", "text"),
    [
        ((48, 60), "hidden_size"),
        ((144, 180), "3 * hidden_size"),
        ((56, 132), "num_attention_heads * head_dim"),
        ((12, 10), "hidden_size // num_attention_heads"),
        ((36, 49), "(image_size // patch_size) ** 2"),
        ((37, 50), "(image_size // patch_size) ** 2 + 1"),
        ((288, 196), "(num_frames // tubelet_size) * (image_size // patch_size) ** 2"),
        ((48**-0.5, 60**-0.5), "hidden_size ** -0.5"),
        ((1 / 48, 1 / 60), "1.0 / hidden_size"),
        ((1e-6, 2e-6), "eps"),
    ],
)
def test_sizes_are_expressions_of_fields(pair: tuple[float, float], text: str) -> None:
    found = Expressions(FIELDS).find(pair)
    assert found is not None and found.text == text


@pytest.mark.parametrize(
    ("pair", "text"),
    [
        ((128, 2 * 20**2 * 8), "2 * channels * patch ** 2"),
        ((3 * 16, 3 * 400), "3 * patch ** 2"),
        ((5 * 4 * 16, 5 * 8 * 400), None),
        ((9 * 50, 9 * 290), "9 * width"),
        ((65 * 50, 65 * 290), None),
    ],
)
def test_sizes_that_are_a_number_times_others(pair: tuple[int, int], text: str | None) -> None:
    found = Expressions({"patch": (4, 20), "channels": (4, 8), "width": (50, 290)}).find(pair)
    assert (found.text if found is not None else None) == text


def test_a_root_of_the_size_of_two_heads() -> None:
    fields = {"width": (192, 1152), "heads": (4, 16), "other": (384, 768), "other_heads": (6, 8)}
    found = Expressions(fields).find((96.0**-0.5, 144.0**-0.5))
    assert found is not None and found.text == "(2 * (width // heads)) ** -0.5"


def test_a_root_of_a_size_that_is_divided_twice() -> None:
    found = Expressions({"width": (96, 160), "heads": (6, 5), "ratio": (4, 2)}).find((4.0**-0.5, 16.0**-0.5))
    assert found is not None and found.text == "(width // heads // ratio) ** -0.5"


def test_a_root_of_a_size_that_is_divided_by_a_field_and_a_number() -> None:
    found = Expressions({"width": (48, 192), "heads": (6, 8)}).find((2.0**0.5, 6.0**0.5))
    assert found is not None and found.text == "((width // heads) // 4) ** 0.5"


def test_a_root_of_a_width_that_is_divided_by_a_number_of_a_list() -> None:
    fields = {"embed_dim": (24, 72), "hidden_size": (48, 216), "depth": (4, 5)}
    for power, text in ((0.5, "(embed_dim // 3) ** 0.5"), (-0.5, "(embed_dim // 3) ** -0.5")):
        found = Expressions(fields).find((8**power, 24**power))
        assert found is not None and found.text == text
    assert Expressions({**fields, "width_dim": (40, 120)}).find((8**0.5, 24**0.5)) is None


def test_a_table_with_some_more_rows_than_the_vocabulary() -> None:
    found = Expressions({"vocab_size": (97, 113), "hidden_size": (48, 192)}).find((105, 121))
    assert found is not None and found.text == "vocab_size + 8"
    assert Expressions({"vocab_size": (97, 113), "other_vocab_size": (103, 119)}).find((110, 126)) is None


def test_sums_of_positions_may_have_some_more() -> None:
    fields = {"max_positions": (40, 57), "target_positions": (11, 23), "width": (64, 151)}
    expressions = Expressions(fields)
    for number, more in ((0, ""), (1, " + 1"), (2, " + 2"), (-1, " - 1"), (-2, " - 2")):
        found = expressions.find((51 + number, 80 + number))
        assert found is not None and found.text == f"max_positions + target_positions{more}"
        for other in ((104 + number, 208 + number), (75 + number, 174 + number)):
            assert (expressions.find(other) is None) == (number != 0)


def test_embeddings_of_the_places_in_all_tiles() -> None:
    fields = {"hidden_size": (96, 384), "image_size": (20, 24), "patch_size": (5, 4), "max_num_tiles": (4, 4)}
    found = Expressions(fields).find((4 * 17 * 96, 4 * 37 * 384))
    assert found is not None and found.text == "max_num_tiles * ((image_size // patch_size) ** 2 + 1) * hidden_size"


def test_no_width_is_divided_by_a_number_of_groups() -> None:
    fields = {"hidden_size": (192, 1152), "num_attention_heads": (4, 16), "num_key_value_heads": (2, 4)}
    found = Expressions(fields).find((96, 288))
    assert found is not None and found.text == "hidden_size // num_attention_heads * num_key_value_heads"


@pytest.mark.parametrize(
    ("pair", "text"), [((25, 45), "(image_size // patch_size) ** 2 + 9"), ((8, 16), "hidden_size // 16")]
)
def test_sizes_with_a_number_that_is_no_field(pair: tuple[int, int], text: str) -> None:
    fields = {"hidden_size": (128, 256), "ffn": (512, 1024), "image_size": (20, 24), "patch_size": (5, 4)}
    found = Expressions(fields).find(pair)
    assert found is not None and found.text == text


def test_the_number_that_is_no_field_has_to_be_the_only_one() -> None:
    fields = {"hidden_size": (128, 256), "other_dim": (144, 288), "vocab_size": (97, 113), "text_vocab_size": (95, 111)}
    assert Expressions(fields).find((8, 16)) is None
    assert Expressions(fields).find((103, 119)) is None


@pytest.mark.parametrize(("pair", "text"), [((32, 224), "4 * head_dim // 5"), ((16, 112), "2 * head_dim // 5")])
def test_four_fifths_of_a_head_have_rotary_positions(pair: tuple[int, int], text: str) -> None:
    found = Expressions({"hidden_size": (60, 240), "head_dim": (40, 280)}).find(pair)
    assert found is not None and found.text == text


def test_a_width_that_is_doubled_four_times() -> None:
    sizes = {"encoder_hidden_size": (48, 144), "hidden_size": (192, 288), "heads": (2, 4)}
    found = Expressions(sizes).find((768, 2304))
    assert found is not None and found.text == "16 * encoder_hidden_size"


def test_heads_of_two_parts() -> None:
    sizes = {
        "rope_head_dim": (32, 88),
        "nope_head_dim": (48, 128),
        "heads": (6, 8),
        "width": (96, 384),
        "rank": (240, 576),
    }
    found = Expressions(sizes).find((480, 1728))
    assert found is not None and found.text == "heads * (rope_head_dim + nope_head_dim)"


def test_the_scale_of_scores_times_a_number() -> None:
    pair = 2.25 * 48.0**-0.5, 2.25 * 136.0**-0.5
    sizes = {"rope_head_dim": (16, 56), "nope_head_dim": (32, 80)}
    found = Expressions(sizes).find(pair)
    assert found is not None and found.text == "2.25 * (rope_head_dim + nope_head_dim) ** -0.5"
    ambiguous = Expressions({"rope_head_dim": (16, 32), "nope_head_dim": (32, 64)})
    assert ambiguous.find((2.25 * 48.0**-0.5, 2.25 * 96.0**-0.5)) is None


@pytest.mark.parametrize("name", ["of_one", "of_one_dim", "pad_token_id", "of_vocab"])
@pytest.mark.parametrize("values", [(4, 0), (0, 4), (0, 0), (-1, 4), (4, -1)])
def test_nothing_is_divided_by_a_field_that_is_0(name: str, values: tuple[int, int]) -> None:
    fields = Expressions({name: values, "width": (8, 12), "side": (5, 7)})
    found = [fields.find(pair) for pair in ((40, 84), (17, 51), (0.3, 0.7), (75, 147))]
    assert [item and item.text for item in found] == ["width * side", None, None, "3 * side ** 2"]


def test_what_does_not_change_is_a_number() -> None:
    assert Expressions(FIELDS).find((3, 3)) is None
    assert Expressions(FIELDS).find((11, 97)) is None


def test_equal_numbers_do_not_share_a_name_by_accident() -> None:
    twelve = dict.fromkeys(["num_hidden_layers", "num_attention_heads", "num_channels"], (12, None))
    fields = Expressions({**twelve, "width": (7, None)})
    heads, layers = fields.find((12, None), "heads"), fields.find((12, None), "layers")
    assert heads is not None and heads.text == "num_attention_heads"
    assert layers is not None and layers.text == "num_hidden_layers"
    assert fields.find((12, None), "size") is None  # which of them is not known
    assert fields.find((7, None), "number") is None  # a factor in a formula


def test_a_size_does_not_follow_the_number_of_layers_by_accident() -> None:
    fields = Expressions({"num_hidden_layers": (2, None), "type_vocab_size": (2, None)})
    types, layers = fields.find((2, None), "count"), fields.find((2, None), "layers")
    assert types is not None and types.text == "type_vocab_size"
    assert layers is not None and layers.text == "num_hidden_layers"
    assert Expressions({"num_hidden_layers": (2, None)}).find((2, None), "count") is None


@pytest.mark.parametrize(
    ("pair", "text"),
    [
        ((80, 256), "(heads + 2 * kv_heads) * (width // heads)"),
        ((64, 160), "(heads + 2) * (width // heads)"),
        ((6.928203105926514, 11.313708305358887), "width ** 0.5"),
    ],
)
def test_sizes_of_joined_projections_and_rounded_roots(pair: tuple[float, float], text: str) -> None:
    found = Expressions({"width": (48, 128), "heads": (6, 8), "kv_heads": (2, 4)}).find(pair)
    assert found is not None and found.text == text


@pytest.mark.parametrize(
    ("pair", "text"),
    [
        ((2560, 5120), "num_heads * head_dim + 2 * n_groups * state_size"),
        ((4736, 9344), "2 * num_heads * head_dim + 2 * n_groups * state_size + num_heads"),
    ],
)
def test_sizes_of_projections_that_are_joined_for_scans(pair: tuple[int, int], text: str) -> None:
    fields = {"hidden_size": (1024, 2048), "expand_": (2, 2), "num_heads": (128, 128), "head_dim": (16, 32),
              "n_groups": (8, 8), "state_size": (32, 64)}  # fmt: skip
    found = Expressions(fields).find(pair)
    assert found is not None
    assert found.text == text


def test_sizes_of_a_part_depend_on_its_own_fields() -> None:
    fields = {"vision_heads": (6, 8), "text_width": (384, 2304), "text_heads": (2, 4), "text_head_dim": (32, 72)}
    found = [Expressions(fields, parts).find((64, 288)) for parts in ((), ("vision_", "text_"))]
    assert [item and item.text for item in found] == ["text_width // vision_heads", "text_heads * text_head_dim"]
    fields = {"text_heads": (6, 8), "vision_image_size": (20, 24), "vision_patch_size": (5, 4)}
    places = Expressions(fields, ("text_", "vision_")).find((16, 36))
    assert places is not None and places.text == "(vision_image_size // vision_patch_size) ** 2"


def test_sizes_that_two_parts_have_are_named_by_the_one_that_is_described() -> None:
    fields = {"vision_size": (32, 72), "vision_step": (4, 6), "text_width": (48, 96), "text_heads": (6, 8)}
    expressions = Expressions(fields, ("vision_", "text_"))
    found = [expressions.find((8, 12), "", part) for part in ("", "vision_", "text_")]
    assert [item and item.text for item in found] == [
        "vision_size // vision_step", "vision_size // vision_step", "text_width // text_heads"
    ]  # fmt: skip
    twins = Expressions({"vision_width": (8, 12), "text_width": (8, 12)}, ("vision_", "text_"))
    named = [twins.find((8, 12), "", part, used) for part, used in (("", ()), ("text_", ()), ("", ("text_width",)))]
    assert [item and item.text for item in named] == ["vision_width", "text_width", "text_width"]


def test_an_expression_of_another_part_is_only_written_if_there_is_none_of_the_own_part() -> None:
    text = {"text_width": (192, 768), "text_heads": (6, 8), "text_kv_heads": (2, 4)}
    expressions = Expressions({"vision_width": (384, 2304), "vision_channels": (3, 3), **text}, ("text_", "vision_"))
    found = [expressions.find((64, 384), "", part) for part in ("", "text_", "vision_")]
    other = "(vision_width // vision_channels) // 2"
    assert [item and item.text for item in found] == [other, "text_width // text_heads * text_kv_heads", other]


def test_the_simplest_expression_of_any_part_is_written() -> None:
    own = {"heads": (6, 8), "head_dim": (32, 80)}
    other = {"inner_heads": (4, 16), "inner_groups": (2, 4), "inner_streams": (32, 32)}
    found = Expressions(other | own, ("inner_",)).find((192, 640))
    assert found is not None and found.text == "heads * head_dim"


def test_a_table_of_several_vocabularies() -> None:
    fields = {"vocab_size": (97, 113), "streams": (32, 32), "sound_vocab_size": (2049, 2049)}
    found = Expressions(fields).find((97 + 32 * 2049 + 1, 113 + 32 * 2049 + 1))
    assert found is not None and found.text == "vocab_size + streams * sound_vocab_size + 1"
    found = Expressions({"vocab_size": (97, 113), "hidden_size": (192, 640)}).find((32 * 97, 32 * 113))
    assert found is not None and found.text == "32 * vocab_size"
    found = Expressions({"vocab_size": (97, 113), "sound_vocab_size": (2049, 2049)}).find((65666, 65682))
    assert found is not None and found.text == "vocab_size + 32 * sound_vocab_size + 1"


def test_pixels_of_patches_are_counted() -> None:
    fields = Expressions({"in_channels": (3, 3), "patch_size": (6, 4), "temporal_patch_size": (2, 2)})
    for pair, text in (
        ((108, 48), "in_channels * patch_size ** 2"),
        ((216, 96), "in_channels * temporal_patch_size * patch_size ** 2"),
    ):
        found = fields.find(pair)
        assert found is not None and found.text == text


def test_tokens_and_numbers_of_layers_are_no_factors() -> None:
    fields = Expressions({"num_layers": (3, 4), "eos_token_id": (2, 2), "width": (16, 48)})
    assert fields.find((32, 96)) == ("2 * width", ("width",))
    assert fields.find((48, 192)) is None
    assert fields.find((2, 2), "count") is None
    padding = Expressions({"pad_token_id": (95, 111)})
    assert padding.find((95, 111), "size") is None
    assert padding.find((95, 111), "number") == ("pad_token_id", ("pad_token_id",))


def test_views_are_patterns() -> None:
    layout = Layout((BATCH, SEQ, 48))
    assert layout.reshape((BATCH, SEQ, 4, 12)) and layout.permute((0, 2, 1, 3))
    found = pattern(*layout.settled())
    assert found.text == "b s (h d) -> b h s d"
    assert found.sizes == (("h", 4),)


def test_views_that_cancel_leave_no_trace() -> None:
    layout = Layout((BATCH, SEQ, 48))
    assert layout.reshape((BATCH * SEQ, 48)) and layout.reshape((BATCH, SEQ, 48))
    before, after = layout.settled()
    assert before == after


def test_views_that_mix_axes_are_no_patterns() -> None:
    assert not Layout((BATCH, 6, 4)).reshape((BATCH, 9, 4))


def test_new_axes_repeat() -> None:
    layout = Layout((BATCH, 2, SEQ, 12))
    assert layout.reshape((BATCH, 2, 1, SEQ, 12)) and layout.expand((BATCH, 2, 3, SEQ, 12))
    assert layout.reshape((BATCH, 6, SEQ, 12))
    found = pattern(*layout.settled())
    assert found.repeats and found.text.endswith("-> b (d w) s h")


@pytest.mark.parametrize(
    ("addresses", "found"),
    [
        (["layer.0", "layer.1", "layer.2"], ("layer[i]", 0, 3)),
        (["h.1.mlp", "h.2.mlp"], ("h[i].mlp", 1, 2)),
        (["group.0.layer.0"] * 3, ("group.0.layer.0", 0, 3)),
        (["layer.0", "layer.2", "layer.4"], ("layer[2*i]", 0, 3)),
        (["net.5.up", "net.8.up", "net.9.up"], ("net[3*i + 2].up", 1, 2)),
        (["layer.2", "layer.0"], ("layer.2", 0, 1)),
        (["up", "down"], ("up", 0, 1)),
    ],
)
def test_addresses_that_count_up_are_a_loop(addresses: list[str], found: tuple[str, int, int]) -> None:
    assert address_pattern(addresses) == found


def test_what_differs_between_layers_is_a_condition() -> None:
    def condition(values: list[object]) -> str:
        varying = Varying(tuple(values), 0)
        return next(text for text, holds in conditions(varying) if varying.follows(holds))

    assert condition([True, False, False, False]) == "i == 0"
    assert condition([4, 8, 4, 8, 4]) == "i % 2 == 0"
    assert condition([4, 4, 8, 4, 4, 8]) == "i % 3 == 2"
    assert condition([4, 4, 8, 8, 4, 8, 8, 8, 8, 4, 8, 8]) == "i in [0, 1, 4, 9]"


def test_definitions_of_one_class_are_told_apart_by_their_addresses() -> None:
    kinds = ["T5Attention", "T5Attention", "T5Block", "T5Stack"]
    paths = [
        "decoder.block.0.layer.0.SelfAttention",
        "decoder.block.0.layer.1.EncDecAttention",
        "decoder.block.0",
        "decoder",
    ]
    assert definition_names(kinds, paths) == ["T5SelfAttention", "T5EncDecAttention", "T5Block", "T5Stack"]
    assert definition_names(["LayerNorm", "Block"], ["norm", "block"], ["LayerNorm"]) == ["LayerNorm2", "Block"]


def test_names_are_free() -> None:
    names = Names(["hidden_states", "seq"])
    assert names.take(["hidden_states", "attention_output"]) == "attention_output"
    assert names.take(["for", "hidden_states"]) == "h"
    assert names.take(["x.y"]) == "x_y"


def test_gaps_are_filled_with_parentheses_where_they_are_operands() -> None:
    gaps = Gaps()
    text = f"x * {gaps.number(3, 'number')} |> Linear({gaps.number(48)}, {gaps.number(1)})"
    assert fill_gaps(text, ["a + b", "a + b"], []) == "x * (a + b) |> Linear(a + b, 1)"


def test_addresses_are_quoted_where_they_have_to_be() -> None:
    assert quote_address("0.weight") == '"0".weight'
    assert quote_address("layer[i].layer-norm") == 'layer[i]."layer-norm"'
    assert quote_address("if.self") == '"if".self'


def test_roles_follow_from_classes_and_addresses() -> None:
    assert role_statements("BertSelfAttention", ["query"], True) == ["role attention"]
    layers = ["attention.output.dense", "intermediate.dense", "output.dense"]
    assert role_statements("BertLayer", layers, True) == [
        "role attention for attention.output.dense",
        "role feed_forward for intermediate.dense, output.dense",
    ]
    assert role_statements("Net", ["proj"], True) == []


def test_coefficients_of_dimensions_are_gaps() -> None:
    texts: list[str] = []
    for times in (2, 3):
        gaps = Gaps()
        texts.append(f"reshape({gaps.number((times * BATCH * SEQ + 1, SEQ**2), 'shape')})")
        assert gaps.values == [times]
    assert texts[0] == texts[1]
    assert fill_gaps(texts[0], ["k + 1"], []) == "reshape([(k + 1)*batch*seq + 1, seq**2])"


def test_modules_that_differ_in_more_than_sizes_are_refused() -> None:
    first, second = (
        LiftedProgram([Definition(Template("Net", (), (), (Statement(text=text),), (), ()), [()], [()], [""])])
        for text in ("return x", "return y")
    )
    Sizes(first, first, {}, {}, lambda path: {})
    with pytest.raises(UntranslatableError, match="`Net` does something else at other sizes"):
        Sizes(first, second, {}, {}, lambda path: {})


@pytest.mark.parametrize("problem", [RuntimeError("a\nb"), AttributeError("a"), AssertionError("a"), KeyError("a")])
def test_whatever_is_raised_becomes_one_refusal(problem: Exception) -> None:
    def fails() -> None:
        raise problem

    with pytest.raises(ArchError, match=r"cannot lift `Net`: archspec finds no spec for it, in net.py:3\n") as caught:
        as_refusal("Net", fails, ", in net.py:3")
    assert type(problem).__name__ not in str(caught.value) and caught.value.__cause__ is problem


def test_layers_that_alternate_are_told_apart_by_their_index() -> None:
    kinds = (0, 1, 1, 2, 0, 1, 1, 2)
    tests = branches_of(kinds, 0)
    assert [test.values for test in tests] == [
        (True, False, False, False, True, False, False, False),
        (None, True, True, False, None, True, True, False),
    ]
    assert is_regular((0, 1, 0, 1, 0), 1) and is_regular((0, 0, 0, 1, 0), 0)
    assert not is_regular((0, 0, 1, 0, 1, 1), 0)
    assert is_regular((0, 0, 1, 0, 1, 1) * 2 + (0,), 0)


def test_sections_of_rotary_positions_add_up_in_small_heads() -> None:
    fields = {"head_dim": 128, "num_attention_heads": 8, "rope_parameters": {"mrope_section": [24, 20, 20]}}
    for proposal in PROPOSALS:
        for choices in CHOICES:
            found = shrink_fields(fields, proposal, choices)
            assert 2 * sum(found["rope_parameters"]["mrope_section"]) == found.get("head_dim", 128)


@pytest.mark.parametrize(("name", "least"), [("intermediate_size", 16), ("hidden_size", 16), ("head_dim", 8)])
def test_sizes_that_are_small_stay(name: str, least: int) -> None:
    for choices in CHOICES:
        assert shrink_fields({name: least - 1}, PROPOSALS[0], choices) == {name: least - 1}
        assert shrink_fields({name: least}, PROPOSALS[0], choices) != {name: least}


def test_tables_of_positions_in_images_keep_their_height_and_width() -> None:
    fields = {"pos_emb_height": 32, "pos_emb_width": 32}
    assert all(shrink_fields(fields, proposal, choices) == fields for proposal in PROPOSALS for choices in CHOICES)


def test_widths_of_stages_keep_their_ratios() -> None:
    widths = [64, 128, 320, 512]
    for proposal in PROPOSALS:
        for choices in CHOICES:
            (found,) = shrink_fields({"hidden_sizes": widths}, proposal, choices).values()
            assert [found[0] * width for width in widths] == [widths[0] * size for size in found]
            assert proposal.unit != 8 or not choices.layers or found[0] < widths[0]


def test_a_rest_of_a_head_is_a_difference() -> None:
    fields = Expressions({"index_head_dim": (112, 256), "rope_head_dim": (40, 80), "width": (100, 300)})
    found = fields.find((72, 176))
    assert found is not None and found.text == "index_head_dim - rope_head_dim"
    assert fields.find((60, 220)) is None


def test_products_of_counts_are_no_sizes() -> None:
    fields = {"hidden_size": (48, 192), "num_attention_heads": (6, 8), "num_experts_per_tok": (2, 3), "groups": (2, 4)}
    found = Expressions({name: (a, b) for name, (a, b) in fields.items()}).find((4, 12), "size")
    assert found is not None and found.text == "(hidden_size // num_attention_heads) // 2"
