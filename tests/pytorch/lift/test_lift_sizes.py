"""Lifting: the expressions of fields that sizes may be, each with its values at two configurations."""

from collections.abc import Iterable

import pytest

from archspec.pytorch.lift.sizes import candidates
from archspec.pytorch.lift.sizes.candidates import Candidate, FieldExpression

Expressions = dict[FieldExpression, tuple[float, float]]


def values(**pairs: tuple[float, float]) -> Expressions:
    """Fields with their values."""
    return {FieldExpression(name, (name,)): pair for name, pair in pairs.items()}


def of(*items: tuple[str, tuple[float, float]]) -> Expressions:
    """Expressions with their values; their fields are the words in their texts."""
    return {
        FieldExpression(text, tuple([word for word in text.split() if word.isidentifier()])): pair
        for text, pair in items
    }


def shown(found: Iterable[Candidate]) -> list[tuple[str, tuple[float, float]]]:
    """Texts and values, once it is checked that the fields are the names in the text."""
    listed = [*found]
    for (text, fields), _ in listed:
        cleaned = "".join([sign if sign.isalnum() or sign in "_." else " " for sign in text]).split()
        assert {word for word in cleaned if word.isidentifier() and word != "log"} == {*fields}
    return [(text, pair) for (text, _), pair in listed]


A = values(a=(24, 80))
AB = values(a=(24, 80), b=(3, 5))
ABC = values(a=(24, 80), b=(3, 5), c=(7, 11))


def test_sizes_with_small_numbers() -> None:
    assert shown(candidates.with_numbers(A)) == [
        ("2 * a", (48, 160)),
        ("3 * a", (72, 240)),
        ("4 * a", (96, 320)),
        ("5 * a", (120, 400)),
        ("6 * a", (144, 480)),
        ("8 * a", (192, 640)),
        ("a // 2", (12, 40)),
        ("a // 4", (6, 20)),
        ("a // 8", (3, 10)),
        ("a + 1", (25, 81)),
        ("a - 1", (23, 79)),
        ("a + 2", (26, 82)),
        ("a - 2", (22, 78)),
    ]
    quotients = [text for text, _ in shown(candidates.with_numbers(values(a=(4, 9), b=(9, 4), c=(2, 2), d=(1, 9))))]
    assert [text for text in quotients if "//" in text] == ["a // 2", "b // 2", "c // 2", "a // 4", "b // 4"]
    product = of(("a * b", (6, 10)))
    assert shown(candidates.with_numbers(product))[0] == ("2 * (a * b)", (12, 20))


def test_sizes_with_one_or_two_more_or_fewer() -> None:
    shifted = [text for text, _ in shown(candidates.shifted(values(a=(2, 3), b=(3, 2), c=(3, 3), d=(1, 3), e=(3, 1))))]
    assert [text for text in shifted if "-" in text] == ["a - 1", "b - 1", "c - 1", "c - 2"]
    assert shown(candidates.shifted(of(("a + 3", (9, 8))))) == [
        ("a + 4", (10, 9)),
        ("a + 3 - 1", (8, 7)),
        ("a + 5", (11, 10)),
        ("a + 3 - 2", (7, 6)),
    ]
    assert shown(candidates.shifted(of(("a + b", (9, 8)))))[0] == ("a + b + 1", (10, 9))


def test_widths_that_are_doubled_several_times() -> None:
    pairs = values(width=(24, 80)) | of(("heads * groups", (6, 8)))
    assert shown(candidates.doubled_widths(pairs)) == [("16 * width", (384, 1280)), ("32 * width", (768, 2560))]


def test_quotients_and_products_of_two() -> None:
    assert shown(candidates.products_and_quotients(values(a=(24, 80), b=(3, 5), c=(7, 11)))) == [
        ("a // b", (8, 16)),
        ("a * b", (72, 400)),
        ("a * c", (168, 880)),
        ("b * c", (21, 55)),
    ]
    pairs = values(a=(6, 6), b=(6, 3), c=(3, 6), d=(4, 3), e=(3, 4))
    assert [text for text, _ in shown(candidates.products_and_quotients(pairs)) if "//" in text] == []


def test_sums() -> None:
    assert shown(candidates.sums(ABC)) == [("a + b", (27, 85)), ("a + c", (31, 91)), ("b + c", (10, 16))]
    assert shown(candidates.sums_of_three(ABC)) == [("a + b + c", (34, 96))]
    assert shown(candidates.sums_of_three(values(a=(2, 3), heads=(3, 5), c=(7, 11)))) == []
    assert shown(candidates.sums_of_three(values(a=(2, 3), vocab_size=(3, 5), c=(7, 11)))) == []


def test_squares() -> None:
    assert shown(candidates.squares(values(a=(3, 5), heads=(2, 4)))) == [
        ("a ** 2", (9, 25)),
        ("a ** 2 + 1", (10, 26)),
        ("a ** 2 + 2", (11, 27)),
    ]
    assert shown(candidates.squares(of(("size // heads", (3, 5)))))[0] == ("(size // heads) ** 2", (9, 25))


def test_several_vocabularies() -> None:
    pairs = values(vocab_size=(50, 60), sound_vocab_size=(7, 9), streams=(3, 2))
    products = [*candidates.products_and_quotients(pairs)]
    found = shown(candidates.vocabulary_rows(pairs, products))
    assert found[:3] == [
        ("9 * vocab_size", (450, 540)),
        ("9 * sound_vocab_size", (63, 81)),
        ("10 * vocab_size", (500, 600)),
    ]
    assert found[2 * 56 - 1] == ("64 * sound_vocab_size", (448, 576))
    assert found[2 * 56 : 2 * 56 + 11] == [
        ("sound_vocab_size + vocab_size * streams", (157, 129)),
        ("sound_vocab_size + vocab_size * streams + 1", (158, 130)),
        ("sound_vocab_size + vocab_size * streams - 1", (156, 128)),
        ("sound_vocab_size + vocab_size * streams + 2", (159, 131)),
        ("sound_vocab_size + vocab_size * streams - 2", (155, 127)),
        ("vocab_size + sound_vocab_size * streams", (71, 78)),
        ("vocab_size + sound_vocab_size * streams + 1", (72, 79)),
        ("vocab_size + sound_vocab_size * streams - 1", (70, 77)),
        ("vocab_size + sound_vocab_size * streams + 2", (73, 80)),
        ("vocab_size + sound_vocab_size * streams - 2", (69, 76)),
        ("sound_vocab_size + 9 * vocab_size", (457, 549)),
    ]
    assert len(found) == 2 * 56 + 2 * 5 + 2 * 56 * 5


def test_places_in_videos() -> None:
    ratios = of(("frames // step", (4, 5)), ("size // patch", (3, 2)), ("frames // heads", (6, 7)))
    assert shown(candidates.video_place_counts(ratios)) == [("(frames // step) * (size // patch) ** 2", (36, 20))]
    assert shown(candidates.video_place_counts(of(("frames // step", (4, 5)), ("width // heads", (3, 2))))) == []
    assert shown(candidates.video_place_counts(of(("frames * step", (4, 5)), ("size // patch", (3, 2))))) == []


def test_widths_for_all_layers() -> None:
    pairs = values(num_layers=(3, 5), hidden_size=(8, 9), size_per_layer=(7, 11), n_layer=(2, 4), depth=(6, 4))
    assert shown(candidates.all_layer_widths(pairs)) == [
        ("num_layers * size_per_layer", (21, 55)),
        ("n_layer * size_per_layer", (14, 44)),
        ("depth * size_per_layer", (42, 44)),
    ]


def test_thirds_and_fractions_of_heads() -> None:
    pairs = values(head_dim=(24, 120), d_head=(12, 27), width=(48, 96)) | of(("width // heads", (6, 12)))
    assert shown(candidates.rotary_thirds(pairs)) == [
        ("head_dim // 3", (8, 40)),
        ("d_head // 3", (4, 9)),
        ("(width // heads) // 3", (2, 4)),
        ("head_dim // 6", (4, 20)),
        ("(width // heads) // 6", (1, 2)),
    ]
    assert shown(candidates.rotary_thirds(values(head_dim=(7, 10)))) == []  # the same rest
    pairs = values(head_dim=(40, 280), d_kv=(8, 24), dim_head=(5, 10), width=(40, 80)) | of(("a // b", (40, 80)))
    assert shown(candidates.rotary_fractions(pairs)) == [
        ("3 * head_dim // 4", (30, 210)),
        ("3 * d_kv // 4", (6, 18)),
        ("3 * head_dim // 8", (15, 105)),
        ("3 * d_kv // 8", (3, 9)),
        ("4 * head_dim // 5", (32, 224)),
        ("4 * dim_head // 5", (4, 8)),
        ("2 * head_dim // 5", (16, 112)),
        ("2 * dim_head // 5", (2, 4)),
    ]


def test_rests_of_heads() -> None:
    pairs = values(head_dim=(9, 8), rope_head_dim=(4, 5), even_head_dim=(9, 3), width=(1, 2), d_kv=(9, 8))
    assert shown(candidates.head_remainders(pairs)) == [
        ("head_dim - rope_head_dim", (5, 3)),
        ("d_kv - rope_head_dim", (5, 3)),
    ]


def test_pixels_of_patches() -> None:
    pairs = values(num_channels=(3, 4), patch_size=(5, 7), temporal_patch_size=(2, 6), patch_size_ratio=(9, 9))
    assert shown(candidates.patch_sizes(pairs)) == [
        ("num_channels * patch_size ** 2", (75, 196)),
        ("num_channels * temporal_patch_size * patch_size ** 2", (150, 1176)),
        ("num_channels * temporal_patch_size ** 2", (12, 144)),
        ("num_channels * temporal_patch_size * temporal_patch_size ** 2", (24, 864)),
        ("3 * patch_size ** 2", (75, 147)),
        ("3 * temporal_patch_size ** 2", (12, 108)),
    ]


def test_places_in_tiles() -> None:
    simple = values(max_tiles=(4, 5), hidden_size=(8, 9), heads=(2, 3))
    places = of(("(size // patch) ** 2", (9, 16)), ("(size // patch) ** 2 + 2", (11, 18)), ("size ** 2", (3, 3)))
    compound = {FieldExpression(text, ("size", "patch")): pair for (text, _), pair in places.items()}
    assert shown(candidates.tile_embedding_sizes(simple, compound)) == [
        ("max_tiles * ((size // patch) ** 2) * hidden_size", (288, 720)),
        ("max_tiles * ((size // patch) ** 2 + 2) * hidden_size", (352, 810)),
    ]


def test_products_and_quotients_of_quotients() -> None:
    simple, compound = values(c=(7, 11), d=(2, 4), e=(8, 16)), of(("a // b", (8, 16)), ("a * b", (5, 6)))
    assert shown(candidates.products_of_three(simple, compound)) == [
        ("a // b * c", (56, 176)),
        ("a // b * d", (16, 64)),
        ("a // b * e", (64, 256)),
    ]
    assert shown(candidates.quotients(simple, compound)) == [("a // b // d", (4, 4))]
    assert shown(candidates.quotients(values(c=(3, 4), d=(4, 3), e=(8, 4), f=(4, 16)), compound)) == []


def test_heads_in_parts() -> None:
    simple = values(heads=(2, 3), n_head=(4, 5), width=(6, 7), heads_size=(6, 6))
    compound = of(("head_dim + rope_head_dim", (10, 20)), ("head_dim + width", (5, 5)))
    assert shown(candidates.split_head_projections(simple, compound)) == [
        ("heads * (head_dim + rope_head_dim)", (20, 60)),
        ("n_head * (head_dim + rope_head_dim)", (40, 100)),
    ]


def test_joined_projections() -> None:
    simple, compound = values(heads=(6, 8), width=(10, 20)), of(("width // heads", (3, 5)), ("width * heads", (1, 1)))
    assert shown(candidates.joined_projections(simple, compound)) == [
        ("(heads + 1) * heads", (42, 72)),
        ("(heads + 1) * width", (70, 180)),
        ("(heads + 1) * (width // heads)", (21, 45)),
        ("(heads + 2) * heads", (48, 80)),
        ("(heads + 2) * width", (80, 200)),
        ("(heads + 2) * (width // heads)", (24, 50)),
    ]
    simple = values(heads=(6, 8), kv_heads=(2, 3))
    assert shown(candidates.joined_projections(simple, of(("width // 2", (3, 5)))))[:8] == [
        ("(heads + kv_heads) * heads", (48, 88)),
        ("(heads + kv_heads) * kv_heads", (16, 33)),
        ("(heads + 1) * heads", (42, 72)),
        ("(heads + 1) * kv_heads", (14, 27)),
        ("(heads + 2 * kv_heads) * heads", (60, 112)),
        ("(heads + 2 * kv_heads) * kv_heads", (20, 42)),
        ("(heads + 2) * heads", (48, 80)),
        ("(heads + 2) * kv_heads", (16, 30)),
    ]


def test_projections_that_are_joined_for_scans() -> None:
    pairs = values(num_heads=(2, 3), head_dim=(5, 7), n_groups=(11, 13), state_size=(17, 19), state=(4, 6))
    assert shown(candidates.scan_projections(pairs)) == [
        ("num_heads * head_dim + 2 * n_groups * state_size", (384, 515)),
        ("2 * num_heads * head_dim + 2 * n_groups * state_size + num_heads", (396, 539)),
        ("num_heads * head_dim + 2 * n_groups * state", (98, 177)),
        ("2 * num_heads * head_dim + 2 * n_groups * state + num_heads", (110, 201)),
    ]
    pairs = values(dt_rank=(2, 3), time_step_rank=(4, 5), rank=(1, 1), state_size=(11, 13), state_dim=(1, 1))
    assert shown(candidates.selection_projections(pairs)) == [
        ("dt_rank + 2 * state_size", (24, 29)),
        ("time_step_rank + 2 * state_size", (26, 31)),
    ]


def test_roots_and_quotients_that_are_no_integers() -> None:
    pairs = values(a=(4, 16)) | of(("b // c", (64, 100)))
    assert shown(candidates.reals(pairs)) == [
        ("a ** -0.5", (0.5, 0.25)),
        ("(b // c) ** -0.5", (0.125, 0.1)),
        ("a ** 0.5", (2.0, 4.0)),
        ("(b // c) ** 0.5", (8.0, 10.0)),
        ("1.0 / a", (0.25, 0.0625)),
        ("1.0 / (b // c)", (0.015625, 0.01)),
    ]
    assert shown(candidates.fourth_roots(values(a=(16, 81))))[0] == ("a ** -0.25", (0.5, pytest.approx(1 / 3)))
    assert shown(candidates.fourth_roots(of(("a // b", (16, 256))))) == [("(a // b) ** -0.25", (0.5, 0.25))]
    assert shown(candidates.ratios(AB)) == [("a / b", (8.0, 16.0)), ("b / a", (0.125, 0.0625))]


def test_logarithms() -> None:
    pairs = values(a=(24, 80), b=(3, 5), c=(3, 80)) | of(("b // d", (2, 4)), ("a // 2", (12, 40)))
    found = [
        (text, (round(first, 6), round(second, 6))) for text, (first, second) in shown(candidates.logarithms(pairs))
    ]
    assert found == [
        ("log(a / b)", (2.079442, 2.772589)),
        ("log(a / (b // d))", (2.484907, 2.995732)),
        ("log(b / (b // d))", (0.405465, 0.223144)),
        ("log(c / (b // d))", (0.405465, 2.995732)),
        ("log(a // 2 / b)", (1.386294, 2.079442)),
        ("log(a // 2 / (b // d))", (1.791759, 2.302585)),
    ]


def texts(found: list[FieldExpression]) -> list[str]:
    assert all(name in item.text for item in found for name in item.fields)
    return [item.text for item in found]


def test_sizes_with_more_of_something() -> None:
    fields = {"a": (10, 20), "b": (74, 84), "c": (73, 83), "num_layers": (70, 80), "still": (10, 10), "other": (70, 81),
              "unknown": (70, None), "vocab_size": (65, 75), "still_vocab": (73, 73)}  # fmt: skip
    assert texts(candidates.with_some_more(74, 84, fields)) == ["a + 64", "c + 1", "vocab_size + 9"]
    assert texts(candidates.with_some_more(75, 85, fields)) == ["b + 1", "c + 2", "vocab_size + 10"]
    assert texts(candidates.with_more_rows(74, 84, fields)) == ["vocab_size + 9"]
    assert texts(candidates.with_more_rows(129, 139, fields)) == ["vocab_size + 64"]
    assert texts(candidates.with_more_rows(130, 140, fields)) == []
    assert texts(candidates.with_more_rows(65, 75, fields)) == []
    assert texts(candidates.with_more_rows(74, 74, fields)) == ["still_vocab + 1"]
    places = of(("p ** 2", (9, 16)), ("q ** 2", (4, 9)))
    assert texts(candidates.with_more_places(10, 17, places)) == ["p ** 2 + 1"]
    assert texts(candidates.with_more_places(73, 80, places)) == ["p ** 2 + 64"]
    assert texts(candidates.with_more_places(74, 81, places)) == []
    assert texts(candidates.with_more_places(9, 16, places)) == []
    assert texts(candidates.with_more_places(9, 14, places)) == ["q ** 2 + 5"]


def test_widths_times_a_number() -> None:
    fields = {"hidden_size": (8, 12), "state_dim": (12, 20), "d": (4, 6), "side": (4, 6), "still_dim": (4, 4),
              "unknown_dim": (4, None), "width": (2, 3)}  # fmt: skip
    assert texts(candidates.with_times(24, 36, fields)) == ["3 * hidden_size", "6 * d"]  # 12 is a field
    assert texts(candidates.with_times(512, 768, fields)) == ["64 * hidden_size"]
    assert texts(candidates.with_times(520, 780, fields)) == []
    assert texts(candidates.with_times(8, 12, fields)) == []
    assert texts(candidates.with_times(10, 15, fields)) == ["5 * width"]
    assert texts(candidates.with_times(60, 100, fields)) == ["5 * state_dim"]
    assert texts(candidates.with_times(10, 15, {"d_model": (2, 3)})) == ["5 * d_model"]
    assert texts(candidates.with_times(60, 90, fields)) == ["15 * d", "30 * width"]
    heads = {"num_heads": (6, 8), "inner": (48, 72)}
    for size, found in (
        (8, ["8 * num_heads"]),
        (48, ["48 * num_heads"]),
        (768, ["768 * num_heads"]),
        (7, []),
        (769, []),
    ):
        assert texts(candidates.with_times(6 * size, 8 * size, heads)) == found


def test_widths_that_are_joined() -> None:
    fields = {"dim": (10, 20), "rank": (3, 7), "still": (5, 5), "unknown": (3, None), "num_heads": (3, 7),
              "num_layers": (3, 7), "hidden": (30, 70)}  # fmt: skip
    for times in (2, 4):
        expected = [f"dim + {times} * rank"]
        assert texts(candidates.with_multiples(10 + 3 * times, 20 + 7 * times, fields)) == expected
    assert texts(candidates.with_multiples(23, 47, fields)) == ["rank + 2 * dim"]
    assert texts(candidates.with_multiples(70, 160, fields)) == ["dim + 2 * hidden"]
    for a, b in ((13, 27), (25, 55), (16, 35), (20, 34), (11, 19), (21, 41), (20, 30)):
        assert texts(candidates.with_multiples(a, b, fields)) == []


def test_numbers_times_squares() -> None:
    fields = {"side": (4, 6), "channels": (3, 5), "heads": (2, 3), "still": (5, 5), "unknown": (2, None)}
    assert texts(candidates.with_squares(16, 36, fields)) == ["side ** 2"]
    assert texts(candidates.with_squares(64, 144, fields)) == ["4 * side ** 2"]
    assert texts(candidates.with_squares(80, 180, fields)) == ["still * side ** 2"]
    assert texts(candidates.with_squares(48, 180, fields)) == ["channels * side ** 2"]
    assert texts(candidates.with_squares(96, 360, fields)) == ["2 * channels * side ** 2"]
    assert texts(candidates.with_squares(36, 150, fields)) == ["side * channels ** 2"]
    assert texts(candidates.with_squares(16, 37, fields)) == texts(candidates.with_squares(17, 36, fields)) == []
    assert texts(candidates.with_squares(64, 216, fields)) == []  # a cube
    assert candidates.with_squares(48, 180, fields)[0].fields == ("channels", "side")
    assert candidates.with_squares(16, 36, fields)[0].fields == ("side",)


def test_heads_whose_number_is_in_a_list() -> None:
    fields = {"embed_dim": (24, 72), "size": (24, 72), "unknown_dim": (24, None), "hidden_size": (128, 256)}
    assert texts(candidates.parts_of_widths(8, 24, fields)) == ["embed_dim // 3"]
    assert texts(candidates.parts_of_widths(12, 36, fields)) == ["embed_dim // 2"]
    assert texts(candidates.parts_of_widths(2, 4, fields)) == ["hidden_size // 64"]
    assert texts(candidates.parts_of_widths(1, 2, fields)) == []
    assert texts(candidates.parts_of_widths(8.0**0.5, 24.0**0.5, fields)) == ["(embed_dim // 3) ** 0.5"]
    assert texts(candidates.parts_of_widths(8.0**-0.5, 24.0**-0.5, fields)) == ["(embed_dim // 3) ** -0.5"]
    assert texts(candidates.parts_of_widths(8.0, 24.0, fields)) == ["embed_dim // 3"]
    assert texts(candidates.parts_of_widths(24, 72, fields)) == []
    assert texts(candidates.parts_of_widths(8, 23, fields)) == []


@pytest.mark.parametrize(
    ("text", "unlikely"),
    [
        ("width // num_key_value_heads", True),
        ("width // kv_heads", True),
        ("width // heads", False),
        ("heads // kv_heads", False),
        ("heads * experts", True),
        ("heads * width", False),
        ("n_head * num_experts_per_tok", True),
        ("groups * top_k", True),
        ("num_groups * topk", True),
        ("heads * d_head", False),
        ("heads * dim_head", False),
        ("heads * head", True),
        ("vocab_size * width", True),
        ("width * size", False),
    ],
)
def test_unlikely_sizes(text: str, unlikely: bool) -> None:
    first, _, second = text.split()
    assert candidates.is_unlikely(FieldExpression(text, (first, second))) == unlikely


@pytest.mark.parametrize(
    ("text", "is_head"),
    [
        ("head_dim", True),
        ("rope_head_dim + nope_head_dim", True),
        ("width // heads", True),
        ("width // num_head", True),
        ("d_kv", True),
        ("head_size", True),
        ("d_head", True),
        ("width", False),
        ("head_dim + width", False),
        ("width // groups", False),
        ("2 * head_dim", False),
        ("head_dims", False),
    ],
)
def test_sizes_of_heads(text: str, is_head: bool) -> None:
    assert candidates.is_of_head(FieldExpression(text, ())) == is_head
