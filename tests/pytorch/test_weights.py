"""Weights of checkpoints in generated modules: all of them, or none."""

import json
from pathlib import Path
from typing import Any

import pytest
from checkpoints import gguf
from small import load

import archspec

torch = pytest.importorskip("torch")

SIZES: dict[str, Any] = {"layers": 2, "hidden": 24, "heads": 2, "ffn": 8, "vocab": 11}


def save(path: Path, state: dict[str, Any], dtype: str = "F32") -> Path:
    """Write a safetensors file, with the names in reverse order."""
    header: dict[str, Any] = {}
    data = b""
    for name, tensor in reversed(list(state.items())):
        part = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        kinds = {
            torch.float32: "F32",
            torch.float64: "F64",
            torch.float16: "F16",
            torch.bfloat16: "BF16",
            torch.int64: "I64",
        }
        header[name] = {
            "dtype": kinds[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(part)],
        }
        data += part
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def module(spec: str = "bert-base-uncased", **more: Any) -> Any:
    return archspec.to_torch(spec, **SIZES, **more)


def others(module: Any) -> dict[str, Any]:
    """Other values for the tensors of a module, tied names included."""
    stored = module.state_dict(keep_vars=True)
    made = {id(tensor): torch.randn_like(tensor) for tensor in stored.values() if tensor.is_floating_point()}
    return {name: made.get(id(tensor), tensor.detach()) for name, tensor in stored.items()}


def same(module: Any, state: dict[str, Any]) -> bool:
    stored = module.state_dict()
    return stored.keys() == state.keys() and all(torch.equal(stored[name], state[name]) for name in stored)


def refused(module: Any, path: Path) -> str:
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    with pytest.raises(archspec.ArchError) as caught:
        archspec.load_weights(module, path)
    assert same(module, before)
    return str(caught.value)


@pytest.mark.parametrize(
    "spec",
    [pytest.param(name, marks=pytest.mark.slow) for name in ("bert-base-uncased", "roberta-base-mlm")]
    + ["bert-base-uncased-mlm"],
)
def test_each_kind_of_checkpoint(spec: str, tmp_path: Path) -> None:
    for kind in ("safetensors", "zip", "old", "wrapped", "shards"):
        filled = module(spec)
        state = others(filled)
        path = tmp_path / f"{kind}.bin"
        if kind == "safetensors":
            path = save(tmp_path / "model.safetensors", state)
        elif kind == "shards":
            folder = path = tmp_path / "shards"
            folder.mkdir()
            items = list(state.items())
            parts = {"1.safetensors": dict(items[:7]), "2.safetensors": dict(items[7:])}
            index = {"weight_map": {name: file for file, part in parts.items() for name in part}}
            (folder / "model.safetensors.index.json").write_text(json.dumps(index))
            for file, part in parts.items():
                save(folder / file, part)
        else:
            root = {"epoch": 3, "state_dict": state} if kind == "wrapped" else state
            torch.save(root, path, _use_new_zipfile_serialization=kind != "old")
        assert archspec.load_weights(filled, path).is_exact
        assert same(filled, state)
        assert all(p.requires_grad for p in filled.parameters())


FOUR = "layer Net(n = 4)(x [n]) -> [n] {\n  w: param [n]\n  return x * .w\n}\n"


def test_weights_that_cannot_be_read(tmp_path: Path) -> None:
    def refusal(path: Path) -> str:
        with pytest.raises(archspec.ArchError) as caught:
            archspec.load_weights(archspec.to_torch(load(FOUR)), path)
        return str(caught.value).replace(f"{tmp_path}/", "")

    zipped = tmp_path / "m.bin"
    torch.save({"w": 3}, zipped)
    assert refusal(zipped).startswith("error[")
    torch.save({"w": torch.ones(4), "other": Path("elsewhere")}, zipped)  # a class that a program would run
    assert refusal(zipped).startswith("error[")
    zipped.write_bytes(b"PK nothing")
    assert refusal(zipped).startswith("error[bad-checkpoint]: m.bin: ")
    cut = save(tmp_path / "m.safetensors", {"w": torch.ones(4)})
    cut.write_bytes(cut.read_bytes()[:-1])
    assert refusal(cut).startswith("error[bad-checkpoint]: m.safetensors: ")
    assert refusal(tmp_path / "none.safetensors").startswith("error[missing-file]")


def test_known_spellings(tmp_path: Path) -> None:
    filled = module()
    state = others(filled)
    old = {
        "bert."
        + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in state.items()
    }
    found = archspec.load_weights(filled, save(tmp_path / "model.safetensors", old))
    assert {variant.kind for variant in found.spellings} == {"prefix", "norm"}
    assert same(filled, state)
    renamed = {f"x.{name}.y": tensor for name, tensor in others(filled).items()}
    archspec.load_weights(filled, save(tmp_path / "model.safetensors", renamed), rename={"x.*.y": "*"})
    assert same(filled, {name[2:-2]: tensor for name, tensor in renamed.items()})


def test_names_of_live_models(tmp_path: Path) -> None:
    from archspec.core.resources import specs_root
    from archspec.formats.configs.names import find_names

    (family,) = find_names("MixtralForCausalLM", specs_root())
    filled = archspec.to_torch("mixtral-8x7b", layers=1, hidden=16, heads=4, groups=2, ffn=8, vocab=11, joined=True)
    state = others(filled)
    live = {family.live(name): tensor for name, tensor in state.items()}
    assert live.keys() != state.keys()
    archspec.load_weights(filled, save(tmp_path / "model.safetensors", live))
    assert same(filled, state)


def test_one_name_of_a_tied_tensor_is_enough(tmp_path: Path) -> None:
    filled = module("bert-base-uncased-mlm")
    state = others(filled)
    tied = ["cls.predictions.decoder.weight", "cls.predictions.decoder.bias"]
    part = {name: tensor for name, tensor in state.items() if name not in tied}
    archspec.load_weights(filled, save(tmp_path / "model.safetensors", part))
    assert same(filled, state)
    part = dict(others(filled))
    part[tied[0]] = part[tied[0]] + 1
    said = refused(filled, save(tmp_path / "model.safetensors", part))
    assert f"`{tied[0]}`" in said and "are one tensor in the module, but differ in the checkpoint" in said


def test_what_does_not_fit_is_the_report_of_verify(tmp_path: Path) -> None:
    filled = module()
    state = others(filled)
    some = {name: tensor for name, tensor in state.items() if "pooler" not in name}
    for wrong in (some, state | {"extra": torch.ones(3)}, state | {"pooler.dense.bias": torch.ones(25)}):
        path = save(tmp_path / "model.safetensors", wrong)
        said = refused(filled, path)
        for line in str(archspec.verify(archspec.load("bert-base-uncased", **SIZES), path)).splitlines()[1:]:
            assert line in said or "-nopooler exactly" in line


def test_types(tmp_path: Path) -> None:
    filled = module()
    state = others(filled)
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        given = {name: tensor.to(dtype) for name, tensor in state.items()}
        archspec.load_weights(filled, save(tmp_path / "model.safetensors", given))
        assert same(filled, {name: tensor.float() for name, tensor in given.items()})
    given = state | {"pooler.dense.bias": torch.ones(24, dtype=torch.int64)}
    assert "is int64 in the checkpoint" in refused(filled, save(tmp_path / "model.safetensors", given))


def test_a_table_of_the_module_that_a_file_names(tmp_path: Path) -> None:
    """Tables that a checkpoint may hold are loaded; one under two names is loaded from either of them."""
    lines = "  a: buffer [n]\n  b: buffer [n]\n  w: frozen param [n]\n  tie b = a\n  return x * .w + .a + .b\n"
    filled = archspec.to_torch(load(f"block It(n = 4)(x [n]) -> [n] {{\n{lines}}}\n"))
    w, one, other = torch.arange(4.0), torch.ones(4), torch.tensor([1.0, float("nan"), 3.0, 4.0])
    for given in ({"a": one}, {"b": other}, {"a": other, "b": other}, {"a": one, "b": one}):
        archspec.load_weights(filled, save(tmp_path / "model.safetensors", {"w": w, **given}))
        (value,) = {id(tensor): tensor for tensor in given.values()}.values()
        assert filled.a is filled.b and torch.allclose(filled.a, value, equal_nan=True)
        assert filled.w.equal(w) and not filled.w.requires_grad
    for a in (one, other.nan_to_num()):  # NaN equals nothing but NaN
        said = refused(filled, save(tmp_path / "model.safetensors", {"w": w, "a": a, "b": other}))
        assert "error[bad-checkpoint]: `b` and `a` are one tensor in the module, but differ in the checkpoint" in said
    assert "help: use a model that does not tie them" in said
    assert "missing" in refused(filled, save(tmp_path / "model.safetensors", {"w": w}))


def test_a_gguf_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(gguf({"token_embd.weight": (11, 24)}, {"general.architecture": "bert"}))
    said = refused(module(), tmp_path / "model.gguf")
    assert said.startswith("error[unsupported]: ")
    assert "is a GGUF file, whose conversion changes weights (the order of rows, norms)" in said
    assert said.endswith("help: load the checkpoint from which it was converted")


def test_damage_leaves_the_module_as_it_was(tmp_path: Path) -> None:
    filled = module()
    path = save(tmp_path / "model.safetensors", others(filled))
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert "truncated" in refused(filled, path)
    assert "not found" in refused(filled, tmp_path / "none.safetensors")
    path.write_bytes(whole)
    with torch.device("meta"):
        empty = module()
    with pytest.raises(archspec.ArchError, match="meta"):
        archspec.load_weights(empty, path)
