"""Checkpoints that torch, safetensors and transformers write, each read here without any of them."""

import os
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from checkpoints import read

import archspec
from archspec import ArchError
from archspec.formats.checkpoints.safetensors import DTYPES

pytestmark = pytest.mark.slow
torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")
safetensors: Any = pytest.importorskip("safetensors.torch")

SMALL = {"vocab": 50, "hidden": 16, "layers": 3, "heads": 2, "ffn": 32, "positions": 20}


def config(**more: Any) -> Any:
    return transformers.BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=20,
        **more,
    )


CLASSES = {
    "bert-base-uncased": "BertModel",
    "bert-base-uncased-mlm": "BertForMaskedLM",
    "bert-base-uncased-pretraining": "BertForPreTraining",
}


@pytest.fixture(params=CLASSES)
def pair(request: pytest.FixtureRequest) -> tuple[archspec.Model, Any]:
    """A model of ours, and the same of transformers."""
    return archspec.load(request.param, **SMALL), getattr(transformers, CLASSES[request.param])(config())


def facts(state: Any) -> dict[str, tuple[tuple[int, ...], str]]:
    return {name: (tuple(t.shape), str(t.dtype).removeprefix("torch.")) for name, t in state.items()}


def read_facts(path: Path) -> dict[str, tuple[tuple[int, ...], str]]:
    return {entry.name: (entry.shape, entry.dtype) for entry in read(str(path)).entries}


@pytest.mark.parametrize("shard", ["1GB", "8KB"])
def test_what_save_pretrained_writes(tmp_path: Path, pair: Any, shard: str) -> None:
    ours, theirs = pair
    theirs.save_pretrained(tmp_path, max_shard_size=shard)
    found = archspec.verify(ours, tmp_path)
    assert found.is_exact and not found.spellings
    assert found.stored.elements == theirs.num_parameters() == found.params
    assert (found.files > 1) == (shard == "8KB")


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 4}])
def test_what_torch_save_writes(tmp_path: Path, pair: Any, options: dict[str, Any]) -> None:
    ours, theirs = pair
    path = tmp_path / "pytorch_model.bin"
    torch.save(theirs.state_dict(), path, **options)
    assert read_facts(path) == facts(theirs.state_dict())
    found = archspec.verify(ours, path)
    assert found.is_exact and not found.notes
    assert found.stored.elements == theirs.num_parameters()
    assert found.stored.tensors < found.stored.names or "bert." not in next(iter(theirs.state_dict()))


def test_other_ways_to_save(tmp_path: Path) -> None:
    theirs = transformers.BertModel(config())
    optimizer = torch.optim.AdamW(theirs.parameters())
    theirs(torch.tensor([[1, 2]])).pooler_output.sum().backward()
    optimizer.step()
    parameters = OrderedDict(theirs.named_parameters())
    for value in (parameters, {"state_dict": theirs.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}):
        torch.save(value, tmp_path / "model.pt")
        assert archspec.verify(archspec.load("bert-base-uncased", **SMALL), tmp_path / "model.pt").is_exact


def test_every_type_of_element(tmp_path: Path) -> None:
    names = ["float8_e4m3fn", "float8_e5m2", "uint16", "uint32", "uint64", "complex64", "complex128", "bool", "int8"]
    names += ["uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex32"]
    state = {name: torch.zeros(2, 3, dtype=getattr(torch, name)) for name in names}
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        torch.save(state, tmp_path / "model.bin", **options)
        assert read_facts(tmp_path / "model.bin") == facts(state)
        sizes = {entry.name: entry.bytes for entry in read(str(tmp_path / "model.bin")).entries}
        assert sizes == {name: t.nbytes for name, t in state.items()}
    stored = {name: tensor for name, tensor in state.items() if name in DTYPES.values()}
    safetensors.save_file(stored, tmp_path / "model.safetensors")
    assert read_facts(tmp_path / "model.safetensors") == facts(stored)
    assert set(safetensors._TYPES) <= set(DTYPES)


def test_views(tmp_path: Path) -> None:
    base = torch.arange(24.0).reshape(4, 6)
    state = {"base": base, "turned": base.T, "part": base[1:3, 2:], "wide": torch.zeros(1).expand(5), "same": base[:]}
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        torch.save(state, tmp_path / "m.pt", **options)
        found = read(str(tmp_path / "m.pt"))
        assert read_facts(tmp_path / "m.pt") == facts(state)
        places = {entry.name: entry.storage_key for entry in found.entries}
        assert places["base"] == places["same"] and len(set(places.values())) == 4
        assert {entry.name: entry.start for entry in found.entries}["part"] == 8 * 4
        assert {entry.name: entry.bytes for entry in found.entries}["wide"] == 4


def test_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    class Payload:
        def __reduce__(self) -> Any:
            return os.system, ("touch ran",)

    path = tmp_path / "model.bin"
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        torch.save({"w": torch.ones(2), "x": Payload()}, path, **options)
        with pytest.raises(ArchError, match=r"refers to `posix.system`, which is not allowed; nothing was run"):
            read(str(path))
    path.write_bytes(pickle.dumps(Payload()))
    with pytest.raises(ArchError, match="bad-checkpoint"):
        read(str(path))
    torch.save(transformers.BertModel(config()), path)
    with pytest.raises(ArchError, match=r"refers to `transformers\.\S*BertModel`, which is not allowed"):
        read(str(path))
    assert not (tmp_path / "ran").exists()


def test_what_safetensors_refuses_is_refused(tmp_path: Path) -> None:
    """Headers changed at random: where the library finds fault, so do we."""
    import random

    from checkpoints import PIECES, SHAPES, header, mutated
    from checkpoints import safetensors as file_of

    source = random.Random(3)
    path = tmp_path / "model.safetensors"
    refused = accepted = 0
    for _ in range(1500):
        path.write_bytes(mutated(file_of(header(SHAPES)), source, PIECES))
        try:
            with safetensors.safe_open(path, "pt") as file:
                theirs = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        except Exception:
            refused += 1
            with pytest.raises(ArchError):
                read(str(path))
        else:
            accepted += 1
            try:
                assert {name: shape for name, (shape, _) in read_facts(path).items()} == theirs
            except ArchError as error:  # what we are stricter in
                assert "is there twice" in str(error) or "of shape" in str(error)
    assert refused > 500 and accepted >= 5


@pytest.mark.parametrize("options", [{}, {"activation_scheme": "static"}])
def test_fp8_layers_of_transformers(tmp_path: Path, options: dict[str, Any]) -> None:
    fp8 = pytest.importorskip("transformers.integrations.finegrained_fp8")
    small = transformers.LlamaConfig(
        vocab_size=50, hidden_size=256, intermediate_size=300, num_hidden_layers=2, num_attention_heads=4
    )
    quantization = transformers.FineGrainedFP8Config(**options)
    with torch.device("meta"):
        theirs = transformers.LlamaForCausalLM(small)
    fp8.replace_with_fp8_linear(theirs, ["lm_head"], quantization, pre_quantized=True)
    state = {name: torch.empty(t.shape, dtype=t.dtype) for name, t in theirs.state_dict().items()}
    safetensors.save_file(state, tmp_path / "model.safetensors")
    fields = {**small.to_dict(), "architectures": ["LlamaForCausalLM"]}
    found = archspec.verify({**fields, "quantization_config": quantization.to_dict()}, tmp_path)
    assert found.is_exact, found
    assert found.dtypes["FP8_E4M3"].tensors == 14
