"""Quantized weights: counted at their logical size; their bytes are those of the tensors that the libraries store."""

import json
from math import ceil, prod
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
WIDTHS = {"int32": 4, "float32": 4, "float16": 2, "int8": 1, "uint8": 1, "float8_e4m3fn": 1}
Layout = dict[str, tuple[str, tuple[int, ...]]]


def cost(quantization: dict[str, Any] | None, **fields: Any) -> archspec.Cost:
    return archspec.cost({**SMALL, "quantization_config": quantization, **fields})


def total(layouts: list[Layout]) -> int:
    return sum(WIDTHS[dtype] * prod(shape) for layout in layouts for dtype, shape in layout.values())


def linear_layers() -> list[tuple[int, int]]:
    """Inputs and outputs of the linear layers of SMALL, without the output layer."""
    return 2 * [*4 * [(256, 256)], *2 * [(256, 384)], (384, 256)]


# The tensors of one linear layer, as the libraries create them --------------------------------------------------------


def gptq(inputs: int, outputs: int, bits: int, group: int) -> Layout:
    """QuantLinear of AutoGPTQ and GPTQModel."""
    groups = -(-inputs // group) if group > 0 else 1
    return {
        "qweight": ("int32", (inputs // 32 * bits, outputs)),
        "qzeros": ("int32", (groups, outputs // 32 * bits)),
        "scales": ("float16", (groups, outputs)),
        "g_idx": ("int32", (inputs,)),
    }


def awq(inputs: int, outputs: int, group: int) -> Layout:
    """WQLinear_GEMM of AutoAWQ."""
    groups = inputs // group if group > 0 else 1
    return {
        "qweight": ("int32", (inputs, outputs // 8)),
        "qzeros": ("int32", (groups, outputs // 8)),
        "scales": ("float16", (groups, outputs)),
    }


def int8(inputs: int, outputs: int) -> Layout:
    """Linear8bitLt of bitsandbytes."""
    return {"weight": ("int8", (outputs, inputs)), "SCB": ("float32", (outputs,))}


def nf4(inputs: int, outputs: int, is_nested: bool) -> Layout:
    """Linear4bit of bitsandbytes, in blocks of 64; those of nested scales have 256."""
    blocks = inputs * outputs // 64
    found: Layout = {"weight": ("uint8", (inputs * outputs // 2, 1))}
    if not is_nested:
        return found | {"weight.absmax": ("float32", (blocks,))}
    return found | {"weight.absmax": ("uint8", (blocks,)), "weight.nested_absmax": ("float32", (-(-blocks // 256),))}


def fp8(inputs: int, outputs: int) -> Layout:
    """FP8Linear of transformers, as in DeepSeek-V3."""
    blocks = (-(-outputs // 128), -(-inputs // 128))
    return {"weight": ("float8_e4m3fn", (outputs, inputs)), "weight_scale_inv": ("float32", blocks)}


@pytest.mark.parametrize(
    ("fields", "layouts"),
    [
        *(
            (
                {"quant_method": "gptq", "bits": bits, "group_size": group},
                [gptq(*sizes, bits, group) for sizes in linear_layers()],
            )
            for bits in (2, 3, 4, 8)
            for group in (32, 128, -1)
        ),
        *(
            (
                {"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": True, "version": "gemm"},
                [awq(*sizes, group) for sizes in linear_layers()],
            )
            for group in (64, -1)
        ),
        ({"load_in_8bit": True, "quant_method": "bitsandbytes"}, [int8(*sizes) for sizes in linear_layers()]),
        ({"load_in_4bit": True, "load_in_8bit": False}, [nf4(*sizes, False) for sizes in linear_layers()]),
        (
            {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True},
            [nf4(*sizes, True) for sizes in linear_layers()],
        ),
        (
            {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]},
            [fp8(*sizes) for sizes in linear_layers()],
        ),
    ],
)
def test_bytes_are_those_of_the_stored_tensors(fields: dict[str, Any], layouts: list[Layout]) -> None:
    found = cost(fields)
    stored = found.stored
    assert stored is not None
    others = 2 * 1000 * 256 + 5 * 256  # the embeddings, the output layer, the norms
    assert stored.converted == found.table.params.total - others
    assert stored.others == 2 * others
    assert stored.weights + stored.scales == total(layouts)
    assert stored.weights == total([dict([*layout.items()][:1]) for layout in layouts])
    assert stored.total == stored.weights + stored.scales + stored.others
    assert {type(number) for number in (stored.converted, stored.weights, stored.scales, stored.others)} == {int}
    assert found.table.params == archspec.load(SMALL).params
    assert found.table.notes[0].startswith("quantized (")


def of_odd_sizes(**fields: Any) -> tuple[int, int, int]:
    stored = cost(fields, hidden_size=244, intermediate_size=361, num_attention_heads=2, num_hidden_layers=1).stored
    assert stored is not None and not stored.unknown
    return stored.converted, stored.weights, stored.scales


def test_parts_of_blocks_are_stored_as_whole_ones() -> None:
    square, long = 244 * 244, 244 * 361
    count = 4 * square + 3 * long
    blocks = 4 * ceil(square / 64) + 3 * ceil(long / 64)
    assert square % 64 and long % 64
    assert of_odd_sizes(_load_in_4bit=True, quant_method="bitsandbytes") == (count, count // 2, 4 * blocks)
    nested = 4 * 4 * ceil(ceil(square / 64) / 256) + 3 * 4 * ceil(ceil(long / 64) / 256)
    found = of_odd_sizes(load_in_4bit=True, bnb_4bit_use_double_quant=True)
    assert found == (count, count // 2, blocks + nested)
    wide = cost({"load_in_4bit": True, "bnb_4bit_use_double_quant": True}, hidden_size=64, intermediate_size=257).stored
    assert wide is not None and wide.scales == 2 * (4 * (64 + 4) + 3 * (257 + 4 * 2))
    scales = 4 * 4 * 3 * 9 + 4 * (2 * 4 * 9 + 3 * 13)
    assert of_odd_sizes(quant_method="fp8", weight_block_size=[100, 30]) == (count, count, scales)
    assert of_odd_sizes(quant_method="fp8", weight_block_size=[1, 999])[2] == 4 * (4 * 244 + 2 * 361 + 244)


def test_zero_points_may_be_left_out() -> None:
    awq = {"quant_method": "awq", "bits": 4, "group_size": 128}
    some, none = cost({**awq, "version": "GEMM"}).stored, cost({**awq, "zero_point": False}).stored
    assert some is not None and none is not None and some.weights == none.weights
    zeros = sum(inputs // 128 * outputs // 2 for inputs, outputs in linear_layers())
    assert some.scales - none.scales == zeros
    assert none.scales == sum(2 * (inputs // 128) * outputs for inputs, outputs in linear_layers())


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


def test_the_type_of_the_other_weights_is_known() -> None:
    stored = cost({"load_in_8bit": True}, torch_dtype="float17").stored
    assert stored is not None and stored.unknown == "the type of the other weights is unknown: `float17`"
    for name in ("torch_dtype", "dtype"):
        stored = cost({"load_in_8bit": True}, **{"torch_dtype": None, name: "torch.float32"}).stored
        assert stored is not None and stored.others == 4 * (2 * 1000 * 256 + 5 * 256)


def test_the_published_size_of_gpt_oss() -> None:
    """`total_size` in the index of openai/gpt-oss-20b."""
    stored = archspec.cost(str(CONFIGS / "gpt-oss-20b.json")).stored
    assert stored is not None
    assert stored.total == 13_761_264_768


def test_layers_that_are_not_converted() -> None:
    full = cost({"load_in_8bit": True}).stored
    some = cost({"load_in_8bit": True, "llm_int8_skip_modules": ["lm_head", "mlp.down_proj"]}).stored
    all_ = cost({"load_in_8bit": True, "llm_int8_skip_modules": []}).stored
    tied = cost({"load_in_8bit": True}, tie_word_embeddings=True).stored
    parts = cost({"quant_method": "gptq", "bits": 4, "modules_in_block_to_quantize": [["self_attn.q_proj"]]}).stored
    assert full is not None and some is not None and all_ is not None and tied is not None and parts is not None
    assert full.converted - some.converted == 2 * 256 * 384
    assert all_.converted - full.converted == 1000 * 256
    assert tied.converted == full.converted
    assert parts.converted == 2 * 256 * 256


MIXTRAL = {**SMALL, "model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "num_local_experts": 4}
MIXTRAL |= {"num_key_value_heads": 4}


def test_layers_of_experts_are_listed() -> None:
    def stored(fields: dict[str, Any]) -> Any:
        return archspec.cost({**MIXTRAL, "quantization_config": {"bits": 4, **fields}}).stored

    gptq, awq = stored({"quant_method": "gptq"}), stored({"quant_method": "awq"})
    assert gptq.unknown == "the configuration does not list the quantized layers of the experts"
    assert awq.unknown == "the configuration does not list the layers of the experts that are not quantized"
    some = stored({"quant_method": "awq", "modules_to_not_convert": ["gate", "k_proj"]})
    more = stored({"quant_method": "awq", "modules_to_not_convert": ["gate"]})
    assert not some.unknown and more.converted - some.converted == 2 * 256 * 256


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
