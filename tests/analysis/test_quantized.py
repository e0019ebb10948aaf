"""Quantized weights: counted at their logical size; their bytes are those of the tensors that the libraries store."""

import json
from pathlib import Path
from typing import Any

import pytest
from paths import DATA

import archspec
from archspec.analysis.cost.quantized import _METHODS, _packed_bytes, _read_block_size, _read_integer
from archspec.testing import main

SMALL: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "torch_dtype": "float16",
    "vocab_size": 1000,
    "hidden_size": 256,
    "intermediate_size": 384,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
CONFIGS = DATA / "configs"


def linear_layers() -> list[tuple[int, int]]:
    """Inputs and outputs of the linear layers of SMALL, without the output layer."""
    return 2 * [*4 * [(256, 256)], *2 * [(256, 384)], (384, 256)]


# The tensors of one linear layer, as the libraries create them --------------------------------------------------------


def test_numbers_of_layouts_are_checked() -> None:
    right: list[object] = [1, -1, 2**20]
    wrong: list[object] = [0, -2, 2**20 + 1, True, 64.0, "64", None]
    for value in right:
        assert _read_integer({"size": value}, "size", 7) == value
    assert (_read_integer({}, "size", 7), _read_integer({"size": 3}, "size", 7, (3, 4))) == (7, 3)
    for value, known in [*((value, None) for value in wrong), (5, (3, 4))]:
        with pytest.raises(archspec.ArchError, match=rf"error\[unsupported\]: unsupported value of `size`: {value!r}$"):
            _read_integer({"size": value}, "size", 7, known)
    assert (_read_block_size([1, 1]), _read_block_size([7, 9])) == ((1, 1), (7, 9))
    for block in ([0, 1], [1, 0], [1], [1, 2, 3], [1.0, 2], [True, 1], 128, None):
        with pytest.raises(archspec.ArchError) as caught:
            _read_block_size(block)
        assert str(caught.value) == f"error[unsupported]: unsupported value of `weight_block_size`: {block!r}"
    assert (_packed_bytes(32, 3), _packed_bytes(8, 4)) == (12, 4)
    with pytest.raises(
        archspec.ArchError, match=r"error\[unsupported\]: 1,001 numbers of 4 bits do not fill 32-bit integers$"
    ):
        _packed_bytes(1001, 4)


def test_the_published_size_of_gpt_oss() -> None:
    """`total_size` in the index of openai/gpt-oss-20b."""
    stored = archspec.cost(str(CONFIGS / "gpt-oss-20b.json")).stored
    assert stored is not None
    assert stored.total == 13_761_264_768


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(SMALL | {"quantization_config": {"quant_method": "gptq", "bits": 4}}))
    assert main(["count", str(path), "--depth", "0"]) == 0
    assert "\nquantized (gptq, 4 bits): counted at its logical size\n" in capsys.readouterr().out
    assert main(["count", str(path), "--depth", "0"]) == 0  # from the cache
    assert "\nquantized (gptq, 4 bits): counted at its logical size\n" in capsys.readouterr().out
    assert main(["import", str(path)]) == 0
    assert "# Quantized (gptq, 4 bits): counted at its logical size.\n" in capsys.readouterr().out
    assert main(["cost", str(path), "--depth", "0", "--wide"]) == 0
    out = capsys.readouterr().out
    assert "weights as stored, gptq, 4 bits" in out
    assert "1,026,560 bytes of other parameters in float16" in out
    assert "bytes of scales and zero points" in out


@pytest.mark.parametrize(
    ("method", "usual"),
    [
        ("gptq", {"bits": 4, "group_size": 128}),
        ("awq", {"bits": 4, "group_size": 128, "version": "gemm", "zero_point": True}),
        ("fp8", {"weight_block_size": [128, 128], "activation_scheme": "dynamic", "expert_dtype": "fp8"}),
        ("bitsandbytes", {"bnb_4bit_use_double_quant": False}),
    ],
)
def test_fields_that_are_left_out_have_their_usual_values(method: str, usual: dict[str, Any]) -> None:
    table = archspec.cost({**SMALL, "intermediate_size": 8 * 129}).table  # one more block of 128 than of 129
    sizes = _METHODS[method](table, {})
    assert sizes == _METHODS[method](table, usual) and len(sizes) == len(linear_layers())


def test_experts_are_whole_blocks_of_mxfp4() -> None:
    def sizes(last: int) -> Any:
        text = f"w: unused param [2, 4, 8]\n  v: unused param [4, 4, {last}]\n  b: unused param [4, 32]\n"
        model = archspec.loads(f'dim n\nblock Net()(x [n]) -> [n] {{\n  {text}  return x\n}}\nmodel "net" = Net()\n')
        return _METHODS["mxfp4"](archspec.cost(model).table, {})

    assert sizes(4) == {"w": (32, 2), "v": (32, 2)} and sizes(6) == {"w": (32, 2), "v": (48, 3)}
    for last in (3, 5):
        with pytest.raises(archspec.ArchError, match="only supported for experts that are stored in one tensor"):
            sizes(last)
