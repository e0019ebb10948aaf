"""ONNX files: their names, what is in them, and that onnxruntime computes what the module does."""

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch_compare
import torch_texts
from bundled import SLOW
from paths import DATA, read_spec
from sections import read_sections
from small import DENSE, load

import archspec
from archspec import Model
from archspec.testing import main

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
runtime = pytest.importorskip("onnxruntime")

SIZES = (*torch_compare.SIZES, (3, 8, 5, 4, 6, 9))
BUNDLED = torch_texts.bundled()
EACH = [
    name if name in SLOW or name not in archspec.models() else pytest.param(name, marks=pytest.mark.exhaustive)
    for name in BUNDLED
]
TINY = read_spec("onnx_tiny")


def small_model(name: str) -> Model:
    spec, small = BUNDLED[name]
    return archspec.load(spec, **small)


def written(model: Model, folder: Path) -> Any:
    """The contents of the file of a model, which the checker accepts."""
    archspec.to_onnx(model, folder / "it.onnx")
    onnx.checker.check_model(str(folder / "it.onnx"), full_check=True)
    return onnx.load(str(folder / "it.onnx"))


def module_of(model: Model, contents: Any) -> Any:
    """The module of a model, filled by the initializers under the names of its tensors."""
    module = archspec.to_torch(model).eval()
    stored = {each.name: torch.tensor(onnx.numpy_helper.to_array(each)) for each in contents.graph.initializer}
    module.load_state_dict({name: stored[torch_compare.canonical_of(model, name)] for name in module.state_dict()})
    return module


def computes_the_same(model: Model, contents: Any, sizes: Iterable[tuple[int, ...]] = SIZES) -> None:
    module, session = module_of(model, contents), runtime.InferenceSession(contents.SerializeToString())
    for chosen in sizes:
        drawn = torch_compare.drawn_inputs(model, module, chosen)
        given = {name: x.astype("float32") if x.dtype == "float64" else x for name, x in drawn.items()}
        with torch.no_grad():
            expected = module(**torch_compare.by_parameter(model, module, given))
        values = [x for x in ((expected,) if isinstance(expected, torch.Tensor) else expected) if x is not None]
        for value, got in zip(values, session.run(None, given), strict=True):
            torch.testing.assert_close(torch.tensor(got), value, rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_onnxruntime_computes_what_the_module_does(name: str, tmp_path: Path) -> None:
    """At other sizes than those of the export, one of them with a batch of 1."""
    model = small_model(name)
    contents = written(model, tmp_path)
    assert [each.name for each in contents.graph.input] == [*model.inputs]
    assert [each.name for each in contents.graph.output] == [*model.outputs]
    stored = {each.name: tuple(each.dims) for each in contents.graph.initializer}
    tied = {tensor.name for tensor in model.tensors if tensor.tied_to} | torch_compare.tied_buffers(model)
    tensors = {each.name: each.shape for each in (*model.tensors, *model.buffers)}
    kept = {name: shape for name, shape in stored.items() if name in tensors}
    assert kept == {name: shape for name, shape in tensors.items() if name not in tied}
    computes_the_same(model, contents)


def test_axes_nodes_and_tensors_have_the_names_of_the_spec(tmp_path: Path) -> None:
    contents = written(load(TINY), tmp_path)

    def axes(value: Any) -> list[Any]:
        return [size.dim_param or size.dim_value for size in value.type.tensor_type.shape.dim]

    assert {each.name: axes(each) for each in (*contents.graph.input, *contents.graph.output)} == {
        "ids": ["batch", "seq"],
        "states": ["batch", "seq", 8],
        "logits": ["batch", "seq", 30],
    }
    assert {each.name for each in contents.graph.initializer if "/" not in each.name} == {
        "words.weight",
        *(f"layers.{i}.{leaf}" for i in range(2) for leaf in ("weight", "bias")),
        "decoder.bias",
    }
    nodes = {node.name: {each.key: each.value for each in node.metadata_props} for node in contents.graph.node}
    assert nodes["layers.1/MatMul"] == {"archspec.address": "layers.1", "archspec.type": "Linear"}
    assert nodes["words/Gather"] == {"archspec.address": "words", "archspec.type": "Embedding"}
    assert {name.partition("/")[0] for name in nodes} == {"words", "layers.0", "layers.1", "decoder"}
    assert {each.name: axes(each) for each in contents.graph.value_info}["layers.1/MatMul"] == ["batch", "seq", 8]
    assert contents.doc_string == "A word model." and contents.producer_name == "archspec"


def test_nothing_is_computed_that_a_checkpoint_fills(tmp_path: Path) -> None:
    """Other weights give the outputs of the module with them, also where the graph reads sums of tensors alone."""
    text = """
dim batch
layer Sums(n = 3)(x [batch, n]) -> [batch, n] {
  a: param [n] ~ constant(1.0)
  b: param [n] ~ constant(1.0)
  c: buffer [n]
  d: const [n] = arange(n) * 2.0
  spare: unused param [n, 2]
  return x * (.a + .b) + exp(.c) + .d
}
"""
    model = load(text)
    contents = written(model, tmp_path)
    initializers = {each.name: each for each in contents.graph.initializer}
    assert {"a", "b", "c", "spare"} <= initializers.keys()
    for i, name in enumerate(("a", "b", "c")):
        other = numpy.array([0.5, 1.5, 2.5], "float32") + i
        initializers[name].CopyFrom(onnx.numpy_helper.from_array(other, name))
    computes_the_same(model, contents)


@pytest.mark.slow
def test_sorts_are_stable(tmp_path: Path) -> None:
    model = load(
        """
layer Best()(x [2, 7]) -> (first int [2, 7], last int [2, 5]) {
  _, first = topk(7)(x)
  _, last  = topk(5)(-x)
  return first, last
}
"""
    )
    contents = written(model, tmp_path)
    session = runtime.InferenceSession(contents.SerializeToString())
    x = numpy.array([[1, 0, 1, 0, 1, 0, 1], [2, 2, 2, 1, 1, 3, 3]], "float32")
    first, last = session.run(None, {"x": x})
    assert (first == numpy.argsort(-x, axis=1, kind="stable")).all()
    assert (last == numpy.argsort(x, axis=1, kind="stable")[:, :5]).all()


@pytest.mark.slow
def test_queries_that_see_no_key_have_the_result_of_the_module(tmp_path: Path) -> None:
    model = small_model("bert-base-uncased")
    contents = written(model, tmp_path)
    ids = numpy.ones((2, 4), "int64")
    given = {"input_ids": ids, "token_type_ids": ids * 0, "attention_mask": ids * numpy.array([[1], [0]])}
    with torch.no_grad():
        expected = module_of(model, contents)(**{name: torch.tensor(x) for name, x in given.items()})
    found = runtime.InferenceSession(contents.SerializeToString()).run(None, given)
    for value, got in zip(expected, found, strict=True):
        torch.testing.assert_close(torch.tensor(got), value, rtol=1e-5, atol=1e-5)


LOOPS = read_sections(DATA / "specs" / "onnx_loops.arch")


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case == "a state and outputs" else pytest.mark.slow) for case in LOOPS]
)
def test_loops_over_a_dimension(case: str, tmp_path: Path) -> None:
    text = f"""
dim batch, seq
layer Net()(x [batch, seq, 3]) -> [batch, seq, 3] {{
  w: param [3] ~ constant(0.5)
  b: buffer [3]
{LOOPS[case]}
}}
"""
    contents = written(model := load(text), tmp_path)
    assert "Scan" in {node.op_type for node in contents.graph.node}
    shortest = 2 if " 1..seq" in LOOPS[case] else 1  # onnxruntime fails where there are no iterations
    computes_the_same(model, contents, sizes=(*SIZES, (2, shortest), (1, shortest)))


@pytest.mark.parametrize(
    "body",
    [
        'h = x |> "for".x: Dense(n, n) |> "class"."a-b".lambda: Dense(n, n)',
        """h = x
  for b in 0..len(sizes) {
    for i in 0..sizes[b] { h = h + (h |> parts[b][i]: Dense(n, n)) }
  }""",
        """h = x
  for b in 0..len(sizes) {
    count = sizes[b]
    for i in 0..count { h = h + (h |> parts[b].x[i + 1]: Dense(n, n)) if i > 0 else h * .weights[i] }
  }
  weights[i]: param [n] for i in 0..1""",
    ],
)
def test_addresses_and_loops_over_lists(body: str, tmp_path: Path) -> None:
    text = f"""{DENSE}
dim batch
block Net(n = 4, sizes = [2, 1, 0])(x [batch, n]) -> [batch, n] {{
  {body}
  return h
}}
"""
    computes_the_same(model := load(text), written(model, tmp_path))


def test_slices_at_the_indices_of_two_loops_are_refused(tmp_path: Path) -> None:
    text = """
dim batch, seq
block Net(n = 4)(x [batch, 2 * seq, n]) -> [batch, n] {
  h = sum(axis = 1)(x)
  for s in 0..seq {
    for t in 0..seq { h = h + sum(axis = 1)(slice(1, s + t, s + t + 1)(x)) }
  }
  return h
}
"""
    with pytest.raises(archspec.ArchError, match="a slice in a loop depends on the index of another loop"):
        written(load(text), tmp_path)


def test_loops_that_would_compute_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_the_first(iteration: Any, bounds: Any, *rest: Any) -> Any:
        return loop(iteration, (bounds[0] + 1, *bounds[1:]) if len(bounds) > 1 else (1, *bounds), *rest)

    loops = importlib.import_module("archspec.pytorch.onnx.loops")
    loop = loops.loop
    text = f"""
dim batch, seq
layer Net()(x [batch, seq, 3]) -> [batch, seq, 3] {{
  w: param [3] ~ constant(0.5)
  b: buffer [3]
{LOOPS["no outputs"]}
}}
"""
    monkeypatch.setattr(loops, "loop", without_the_first)
    with pytest.raises(archspec.ArchError, match="its loops would compute something else"):
        archspec.to_onnx(load(text), tmp_path / "it.onnx")
    assert not (tmp_path / "it.onnx").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_layers(kind: str, tmp_path: Path) -> None:
    text = f"""
import std {{ {kind} }}
dim batch, seq
block Net(x [batch, seq, 3]) -> [batch, seq, 4] {{
  output, {"_, _" if kind == "LSTM" else "_"} = x |> own: {kind}(3, 4)
  return output
}}
"""
    contents = written(model := load(text), tmp_path)
    computes_the_same(model, contents, sizes=(*SIZES, (2, 1), (1, 1)))
    (scan,) = (node for node in contents.graph.node if node.op_type == "Scan")
    assert scan.name == "own/Scan"
    (body,) = (each.g for each in scan.attribute if each.name == "body")
    assert [value.name for value in body.input][-1] == "own/Scan/index"
    assert {node.name.partition("/")[0] for node in body.node} == {"own"}
    assert {each.value for node in body.node for each in node.metadata_props} == {"own", kind}
    assert [size.dim_param or size.dim_value for size in body.input[0].type.tensor_type.shape.dim] == ["batch", 4]


def test_an_operation_without_a_form_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translations = importlib.import_module("archspec.pytorch.onnx.translations")
    monkeypatch.setattr(translations, "translations", lambda: {})
    text = "dim batch\nlayer Net()(x [batch, 4]) -> [batch, 2] {\n  best, _ = x |> topk(2)\n  return best\n}"
    with pytest.raises(archspec.ArchError, match=r"no form of `aten\.sort\.stable`"):
        archspec.to_onnx(load(text), tmp_path / "it.onnx")
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
def test_large_weights_are_in_a_file_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api = importlib.import_module("archspec.pytorch.onnx.api")
    monkeypatch.setattr(api, "MAX_FILE_BYTES", 1000)
    model = load(TINY)
    archspec.to_onnx(model, tmp_path / "it.onnx")
    assert {path.name for path in tmp_path.iterdir()} == {"it.onnx", "it.onnx.data"}
    computes_the_same(model, onnx.load(str(tmp_path / "it.onnx")))
    (tmp_path / "it.onnx").unlink()
    with pytest.raises(archspec.ArchError, match=r"it\.onnx\.data` already exists"):
        archspec.to_onnx(model, tmp_path / "it.onnx")


def test_weights_larger_than_the_memory_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("archspec.pytorch.onnx.api"), "_memory", lambda: 1655)
    message = "cannot export tiny to ONNX: its weights take 1,656 bytes, and this machine has 1,655 bytes of memory"
    with pytest.raises(archspec.ArchError) as caught:
        archspec.to_onnx(load(TINY), tmp_path / "it.onnx")
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("untranslatable", message)


def test_a_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api = importlib.import_module("archspec.pytorch.onnx.api")
    for name in ("export", "named", "check_tensors"):  # what is written is not reached
        monkeypatch.setattr(api, name, lambda *_: None)
    monkeypatch.setattr(api, "_memory", lambda: 1656)
    file = tmp_path / "none" / "it.onnx"
    with pytest.raises(archspec.ArchError) as caught:
        archspec.to_onnx(load(TINY), file)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("usage", f"cannot write {file}: No such file or directory")


def test_a_file_that_exists_is_replaced_on_request_only(tmp_path: Path) -> None:
    def refused(file: Path, **force: bool) -> str:
        with pytest.raises(archspec.ArchError) as caught:
            archspec.to_onnx(load(TINY), file, **force)
        return caught.value.diagnostics[0].message

    (tmp_path / "folder.onnx").mkdir()
    (tmp_path / "it.onnx.data").write_bytes(b"weights")
    (tmp_path / "link.onnx").symlink_to(tmp_path / "nothing")
    for file, found in (("folder.onnx", "folder.onnx"), ("it.onnx", "it.onnx.data"), ("link.onnx", "link.onnx")):
        assert refused(tmp_path / file) == f"`{tmp_path / found}` already exists"
    assert refused(tmp_path / "folder.onnx", force=True) == f"`{tmp_path / 'folder.onnx'}` is not a file"


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, file = tmp_path / "tiny.arch", tmp_path / "tiny.onnx"
    spec.write_text(TINY, encoding="utf-8")
    command = ["build", str(spec), "--to", "onnx", "-o", str(file)]
    assert main(command) == 0
    assert capsys.readouterr() == ("", "")
    assert main(command) == 2
    assert "already exists" in capsys.readouterr().err
    before = file.read_bytes()
    assert main([*command, "--force", "--set", "vocab=31"]) == 0
    assert file.read_bytes() != before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny.arch", "tiny.onnx"]


@pytest.mark.parametrize("package", ["onnx", "onnxscript"])
def test_a_missing_package_is_named(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(archspec.ArchError) as caught:
        archspec.to_onnx(load(TINY), tmp_path / "it.onnx")
    (found,) = caught.value.diagnostics
    assert found.code == "missing-package" and "archspec-dsl[onnx]" in (found.help or "")
