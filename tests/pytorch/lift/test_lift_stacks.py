"""Lifting: declarations of the unused tensors of equal layers."""

from archspec.pytorch.lift.statements.writing import Declaration, stacked


def layer(address: str, width: int = 4) -> list[tuple[str, str, tuple[int, ...]]]:
    return [
        (f"{address}.up.weight", "unused param", (width, 2)),
        (f"{address}.up.bias", "unused param", (width,)),
    ]


def test_equal_layers_are_one_declaration_of_each_tensor() -> None:
    owned = [("scale", "param", (1,)), *layer("tower.layers.0"), *layer("tower.layers.1"), *layer("tower.layers.2")]
    assert [*stacked(owned)] == [
        Declaration("scale", "param", (1,)),
        Declaration("tower.layers[i].up.weight", "unused param", (4, 2), 3),
        Declaration("tower.layers[i].up.bias", "unused param", (4,), 3),
    ]


def test_lists_in_a_list_of_different_layers_are_declared_one_by_one() -> None:
    stages = [*layer("stages.0.0"), *layer("stages.0.1"), *layer("stages.1.0", 6), *layer("stages.1.1", 6)]
    assert [item.address for item in stacked(stages)] == [
        "stages.0[i].up.weight",
        "stages.0[i].up.bias",
        "stages.1[i].up.weight",
        "stages.1[i].up.bias",
    ]


def test_different_layers_and_used_tensors_are_declared_as_they_are() -> None:
    different = [*layer("layers.0"), *layer("layers.1", 6)]
    used = [(address, "param", shape) for address, _, shape in layer("layers.0") + layer("layers.1")]
    gap = [*layer("layers.0"), *layer("layers.2")]
    for owned in (different, used, gap):
        assert [*stacked(owned)] == [Declaration(*item) for item in owned]
