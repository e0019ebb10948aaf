"""The checks of sizes that generated code makes of the inputs of a model, as text."""

from collections.abc import Callable

from small import load

from archspec.codegen.build import torch_source

INPUTS = {
    "x [batch, seq, n], y [batch, seq, n]": "x + y",
    "x [batch, seq, n], y [batch, 2 * seq]": "x + sum(axis = [0, 1])(y)",
    "x [batch, seq, n], y [batch, seq]": "x + sum(axis = [0, 1])(y)",
    "x [batch, seq, seq]": "x * real(n)",
    "y [seq, n], x [batch, seq, n]": "x + y",
    "x [..., n], y [..., n]": "x + y",
    "x [..., n], y [..., 1]": "x + y",
    "x [..., seq, n], y [seq]": "x + sum(axis = 0)(y)",
    "x [batch, seq, n], y [n, seq, batch]": "x + sum(axis = [0, 1, 2])(y)",
    "x [batch, 3, n, seq], y [batch, 3]": "x + sum(axis = [0, 1])(y)",
    "x [n, 5], y [n, 5], z [n, 5, 3]": "x + y + sum(axis = 2)(z)",
    "x [batch, n, 5]": "x * 2.0",
    "x [..., n, 5]": "x * 2.0",
    "x [batch, n, seq, 5]": "x * 2.0",
    "x [batch, seq, n], y [3, 2 * n, seq] = none": "x + sum(axis = [0, 1, 2])(y) if y != none else x",
    "x [n, seq], y [k, n] = none, z [seq, k] = none": (
        "x + sum(axis = [0, 1])(y) + sum(axis = [0, 1])(z) if y != none and z != none else x"
    ),
    "x [batch, n], y [batch, seq], z [seq, batch // 2, 3 * n + 1]": (
        "x + sum(axis = [0, 1])(y) + sum(axis = [0, 1, 2])(z)"
    ),
    "x [seq, n], a_rather_long_name [batch, n, seq, 2 * n, 3 * n, 4 * n, 5 * n]": (
        "x + sum(axis = [0, 1, 2, 3, 4, 5, 6])(a_rather_long_name)"
    ),
}


def test_checks_of_sizes(golden: Callable[[str, str], None]) -> None:
    texts: list[str] = []
    for inputs, value in INPUTS.items():
        output = inputs.partition("x ")[2].partition("]")[0]
        text = torch_source(load(f"dim batch, seq, k\nblock Net(n = 4)({inputs}) -> {output}] {{ return {value} }}"))
        texts.append(text[text.index("    def forward") : text.index("        return")])
    golden("torch/sizes.txt", "\n".join(texts))
