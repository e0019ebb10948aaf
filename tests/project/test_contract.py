"""What the package promises to those who use it: the Python names, the forms of a SPEC, overrides, and diagnostics."""

import importlib
import inspect
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx
import pytest
from paths import ROOT
from small import DENSE, SCALE, findings, load

import archspec
from archspec.testing import check, main

NET = (
    DENSE
    + SCALE
    + """
fn double(x [...]) -> [...] {
  return x * 2.0
}
dim batch, seq
## A small one.
block Net(n = 4, rate = 0.5, bias = true, name = "a", sizes = [2, 3], Layer = Dense, activation = double, limit = none)
         (x [batch, seq, n], mask bool [batch, seq] = none) -> (states [batch, seq, n], first [batch, n]) {
  gain: param []
  spare: unused param [sizes[0], sizes[1]] if name == "a"
  shift: buffer [n]
  h = x
    |> first:  Layer(n)
    |> activation
    |> second: Dense(n, bias = bias)
    |> * .gain
    |> * rate
    |> + .shift
    |> min(_, limit) if limit != none
    |> where(reshape([batch, seq, 1])(mask), _, 0.0) if mask != none
  return h, pick(axis = 1, index = 0)(h)
}
model "net" = Net()
"""
)


@pytest.fixture
def net(tmp_path: Path) -> str:
    path = tmp_path / "net.arch"
    path.write_text(NET)
    return str(path)


# Python --------------------------------------------------------------------------------------------------------------


def test_what_a_model_tells() -> None:
    model = load(NET)
    assert isinstance(model, archspec.Model)
    assert (model.name, model.doc, model.overrides, model.warnings) == ("net", "A small one.", {}, ())
    assert (model.params.total, model.params.trainable, model.params.frozen) == (47, 47, 0)
    assert model.hyperparameters == {
        "n": 4,
        "rate": 0.5,
        "bias": True,
        "name": "a",
        "sizes": [2, 3],
        "Layer": "Dense",
        "activation": "double",
        "limit": None,
    }
    assert {name: (str(type.shape[1]), type.dtype) for name, type in model.inputs.items()} == {
        "x": ("seq", "real"),
        "mask": ("seq", "bool"),
    }
    assert {name: [str(size) for size in type.shape] for name, type in model.outputs.items()} == {
        "states": ["batch", "seq", "4"],
        "first": ["batch", "4"],
    }
    assert [tuple(buffer) for buffer in model.buffers] == [("shift", (4,))]
    assert "net" in repr(model) and "47" in repr(model)


def test_what_a_tensor_tells() -> None:
    tensors = {tensor.name: tensor for tensor in load(NET, bias=False).tensors}
    assert list(tensors) == ["gain", "spare", "first.weight", "first.bias", "second.weight"]
    tensor = tensors["first.weight"]
    assert tensor._asdict() == {
        "name": "first.weight",
        "shape": (4, 4),
        "params": 16,
        "size": 16,
        "trainable": True,
        "tied_to": None,
        "role": None,
        "layer": "first",
        "type": "Dense",
    }
    assert (tensors["gain"].layer, tensors["gain"].type, tensors["gain"].shape) == ("", "Net", ())
    assert all(type(size) is int for t in tensors.values() for size in (*t.shape, t.params, t.size))


def test_what_nodes_and_edges_tell() -> None:
    graph = load(NET).graph()
    assert isinstance(graph, networkx.DiGraph) and not graph.is_multigraph()
    assert {name: (data["kind"], data["type"], data["params"]) for name, data in graph.nodes(data=True)} == {
        "input:x": ("input", "real", 0),
        "input:mask": ("input", "bool", 0),
        "first": ("layer", "Dense", 20),
        "#double.0": ("op", "double", 0),
        "second": ("layer", "Dense", 20),
        "gain": ("param", "real", 1),
        "#mul.0": ("op", "mul", 0),
        "#mul.1": ("op", "mul", 0),
        "shift": ("buffer", "real", 0),
        "#add.0": ("op", "add", 0),
        "#reshape.0": ("op", "reshape", 0),
        "#where.0": ("op", "where", 0),
        "#pick.0": ("op", "pick", 0),
        "output:states": ("output", "real", 0),
        "output:first": ("output", "real", 0),
        "spare": ("param", "real", 6),
    }
    assert [str(size) for size in graph.nodes["first"]["shape"]] == ["batch", "seq", "4"]
    edge = graph.edges["#double.0", "second"]
    assert ([str(size) for size in edge["shape"]], edge["uses"]) == (["batch", "seq", "4"], [(0, "x")])
    line = NET[: NET.index("|> second")].count("\n") + 1
    assert graph.nodes["second"]["source"].endswith(f"spec.arch:{line}")


def test_blocks_name_what_is_applied_in_them_and_their_applications() -> None:
    model = load(
        SCALE
        + """
block Inner(n)(x [..., n]) -> [..., n] {
  return x |> a: Scale(n) |> tanh |> tanh
}
block Outer(n)(x [..., n]) -> [..., n] {
  inner: Inner(n)
  return x |> .inner |> .inner |> b: Scale(n)
}
block Net()(x [..., 4]) -> [..., 4] {
  return x |> outer: Outer(4)
}
"""
    )
    graph = model.graph()
    assert [node for node in graph if ":" not in node] == [
        "outer.inner.a",
        "outer.inner#tanh.0",
        "outer.inner#tanh.1",
        "outer.inner.a@2",
        "outer.inner@2#tanh.0",
        "outer.inner@2#tanh.1",
        "outer.b",
    ]
    assert graph.nodes["outer.inner@2#tanh.0"]["path"] == ("outer", "outer.inner@2")
    assert [n for n in model.graph("block") if ":" not in n] == ["outer"]
    deeper = model.graph("block", depth=2)
    assert [(n, d["kind"], d["params"]) for n, d in deeper.nodes(data=True) if ":" not in n] == [
        ("outer.inner", "block", 4),
        ("outer.inner@2", "block", 0),
        ("outer.b", "layer", 4),
    ]
    assert deeper.nodes["outer.inner@2"]["shared_with"] == ("outer.inner",)


def test_blocks_that_interleave_in_their_addresses_make_no_circle() -> None:
    """Folding goes by application: `a.one` and `a.two` have a prefix in common, and `b` between them."""
    model = load(
        SCALE
        + """
block Inner(n)(x [..., n]) -> [..., n] {
  return x |> s: Scale(n)
}
block Net()(x [..., 4]) -> [..., 4] {
  return x |> a.one: Inner(4) |> b: Inner(4) |> a.two: Inner(4)
}
"""
    )
    graph = model.graph("block")
    assert list(networkx.topological_sort(graph))[1:4] == ["a.one", "b", "a.two"]


def test_the_one_exception_carries_diagnostics() -> None:
    assert issubclass(archspec.ArchError, Exception)
    with pytest.raises(archspec.ArchError) as caught:
        archspec.load("no such model")
    (found,) = caught.value.diagnostics
    assert (found.code, found.severity) == ("unknown-model", "error")
    assert str(caught.value) == found.render()


@pytest.mark.parametrize(
    "spec", ["", " ", ":", ".arch", "a/b", "a.arch:", "\0", "\0.arch", "/", ".", "-x", "a\nb.arch"]
)
def test_whatever_is_asked_for_is_answered_by_that_exception(spec: str) -> None:
    with pytest.raises(archspec.ArchError):
        archspec.load(spec)


def test_what_is_public_is_documented_and_typed() -> None:
    assert set(archspec.__all__) >= {"ArchError", "Model", "load", "models"}
    members = [archspec.load, archspec.models, archspec.ArchError, archspec.Model]
    members += [value for name, value in vars(archspec.Model).items() if not name.startswith("_")]
    for member in members:
        assert inspect.getdoc(member), member
        function = member.fget if isinstance(member, property) else member
        if inspect.isfunction(function):
            signature = inspect.signature(function)
            assert signature.return_annotation is not signature.empty, member
            assert all(p.annotation is not p.empty for n, p in signature.parameters.items() if n != "self"), member


def test_a_hyperparameter_may_have_any_name() -> None:
    text = "layer L(spec = 2, self = 3, text = 1)(x [..., spec]) -> [..., spec] {\n  w: param [self, spec, text]\n"
    text += "  return x * sum(axis = [0, 1, 2])(.w)\n}\n"
    assert load(text).params.total == 6
    assert archspec.load("bert-base-uncased", **{"layers": 1}).overrides == {"layers": 1}


# What a SPEC is ------------------------------------------------------------------------------------------------------


def total(capsys: pytest.CaptureFixture[str], *arguments: str) -> int:
    assert main(["count", *arguments, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)["params"]["total"]


def test_the_forms_of_a_spec(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = SCALE + 'model "one" = Scale(1)\n', SCALE + 'model "two: 2" = Scale(2)\nmodel "three" = Scale(3)\n'
    (tmp_path / "one.arch").write_text(one)
    (tmp_path / "two.arch").write_text(two)
    (tmp_path / "plain").write_text(one)
    (tmp_path / "bert-base-uncased.arch").write_text(one)
    monkeypatch.chdir(tmp_path)
    expected = {
        "one.arch": 1,
        "./one.arch": 1,
        f"{tmp_path}/one.arch": 1,
        "./plain": 1,
        "one.arch:one": 1,
        "two.arch:two: 2": 2,
        f"{tmp_path}/two.arch:three": 3,
        "bert-base-uncased.arch": 1,
        "bert-base-uncased": 109_482_240,
    }
    for spec, number in expected.items():
        assert archspec.load(spec).params.total == number == total(capsys, spec), spec
    for text, spec, number in ((one, "-", 1), (two, "-:two: 2", 2), (two, "-:three", 3)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert total(capsys, spec) == number


@pytest.mark.parametrize(
    "spec", ["two.arch", "two.arch:four", "two.arch:", "none.arch", "plain", "./none", "empty.arch"]
)
def test_a_spec_that_names_nothing(
    spec: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "two.arch").write_text(SCALE + 'model "two" = Scale(2)\nmodel "three" = Scale(3)\n')
    (tmp_path / "plain").write_text("")
    (tmp_path / "empty.arch").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(archspec.ArchError) as caught:
        archspec.load(spec)
    assert main(["count", spec]) == (1 if spec == "empty.arch" else 2)
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"error[{caught.value.diagnostics[0].code}]: ")
    if spec == "two.arch":
        assert "two" in err and "three" in err


# Overrides -----------------------------------------------------------------------------------------------------------

SETTINGS: dict[str, Any] = {
    "n=6": 6,
    "n = 1_0": 10,
    "rate=2": 2,
    "rate=-1e-3": -0.001,
    "rate=1.5": 1.5,
    "bias=false": False,
    "name=b": "b",
    'name="b c"': "b c",
    "sizes=[5, 7]": [5, 7],
    "Layer=Scale": "Scale",
    "activation=tanh": "tanh",
    "activation=double": "double",
    "activation=relu2": "relu2",  # of the standard library, which the file does not import
    "limit=1.5": 1.5,
    "limit=none": None,
    "limit=inf": float("inf"),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_overrides_mean_the_same_everywhere(setting: str, net: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, value = setting.split("=")[0].strip(), SETTINGS[setting]
    model = archspec.load(net, **{name: value})
    assert main(["count", net, "--set", setting, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert model.overrides == {name: value}
    assert model.hyperparameters == archspec.load(net).hyperparameters | {name: value}
    assert document["params"] == model.params._asdict()
    written = "inf" if value == float("inf") else value  # JSON has no word for it
    assert document["overrides"] == {name: written}
    assert document["hyperparameters"] == model.hyperparameters | {name: written}


@pytest.mark.parametrize(
    ("overrides", "code"),
    [
        ({"width": 3}, "unknown-argument"),
        ({"n": "four"}, "wrong-kind"),
        ({"n": 4.5}, "wrong-kind"),
        ({"n": True}, "wrong-kind"),
        ({"n": [4]}, "wrong-kind"),
        ({"n": 0, "bias": False, "Layer": "Scale"}, "wrong-kind"),
        ({"sizes": [-4, 1]}, "wrong-kind"),
        ({"sizes": [10**30, 1]}, "budget"),
        ({"bias": 1}, "wrong-kind"),
        ({"Layer": "Dens"}, "unknown-name"),
        ({"Layer": "double"}, "wrong-kind"),
        ({"Layer": 3}, "wrong-kind"),
        ({"rate": float("nan")}, "bad-override"),
        ({"n": {1, 2}}, "bad-override"),
        ({"n": {}}, "bad-override"),
        ({"sizes": [2, {}]}, "bad-override"),
    ],
    ids=str,
)
def test_overrides_that_do_not_do(overrides: dict[str, Any], code: str | None) -> None:
    assert {d.code for d in findings(NET, **overrides)} == {code}


def test_several_overrides_add_up_and_the_last_of_one_name_wins(net: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert total(capsys, net, "--set", "n=3", "--set", "bias=false") == archspec.load(net, n=3, bias=False).params.total
    assert total(capsys, net, "--set", "n=3", "--set", "n=5") == archspec.load(net, n=5).params.total


# Diagnostics ---------------------------------------------------------------------------------------------------------


def test_a_diagnostic_shows_the_place_with_a_caret_under_the_cause(
    net: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = NET.replace("|> first:  Layer(n)", "|> first:  Layer(m)")
    Path(net).write_text(text)
    assert main(["count", net]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"error\[[a-z-]+\]: .*`m`.*", lines[0])
    place = re.fullmatch(rf" *--> {re.escape(net)}:(\d+):(\d+)", lines[1])
    assert place
    row, column = int(place[1]), int(place[2])
    assert text.splitlines()[row - 1][column - 1] == "m"
    shown, marked = lines[3], lines[4]
    assert shown == f"{row} | {text.splitlines()[row - 1]}"
    assert marked.index("^") == shown.index("Layer(m)") + len("Layer(") and marked.count("^") == 1
    assert all(re.match(r"note: |help: |error\[| *-->| *\d* \|", line) for line in lines if line)


def test_every_mistake_is_reported_in_one_run_and_each_once() -> None:
    text = NET.replace("|> first:  Layer(n)", "|> first:  Layer(m)").replace("* rate", "* rat")
    text = text.replace("return x * 2.0", "return x * y")
    text = text.replace("gain: param []", "gain param []")
    found = findings(text)
    names = ["`y`", "param", "`m`", "`rat`"]
    assert len(found) == len(names), [d.message for d in found]
    assert all(name in d.message for name, d in zip(names, found, strict=True))
    assert [d.span.start for d in found if d.span] == sorted(d.span.start for d in found if d.span)


def test_a_size_that_does_not_fit_says_where_it_was_bound_first() -> None:
    (found,) = findings(
        """
dim batch, seq, other
fn join(a [batch, seq], b [batch, seq]) -> [batch, seq] {
  return a + b
}
block Net()(a [batch, seq], b [batch, other]) -> [batch, seq] {
  scale: param []
  return join(a, b) * .scale
}
"""
    )
    assert (found.code, len(found.notes)) == ("dimension", 1)
    note = found.notes[0]
    assert "`seq`" in note.text and note.span is not None
    assert note.span.source.text[note.span.start : note.span.end] == "a"
    assert found.span and found.span.source.text[found.span.start : found.span.end] == "b"


def test_the_nearest_name_is_offered() -> None:
    (found,) = findings(NET.replace("|> activation\n", "|> activatoin\n").replace("= double,", "= double,"))
    assert found.help == "did you mean `activation`?"


def test_a_callee_is_not_taken_for_a_less_similar_hyperparameter(tmp_path: Path) -> None:
    (tmp_path / "m.arch").write_text(
        "import std { Linear }\n\nblock B(inner = 2)(x [inner]) -> [inner] { return a: Linaer(inner, inner)(x) }\n"
    )
    (found,) = [d for d in check(str(tmp_path / "m.arch")) if d.severity == "error"]
    assert found.help == "did you mean `Linear`?"


def test_numpy_is_not_needed() -> None:
    code = "import sys; sys.modules['numpy'] = None\nimport archspec\narchspec.load('albert-base-v2').graph('op')\n"
    root = Path(archspec.__file__).parent.parent
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True, timeout=60)


def test_a_path_may_be_a_path_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = "block Net(n = 4)(x [batch, n]) -> [batch, n] {\n  return l: Linear(n, n)(x)\n}\n"
    (tmp_path / "net.arch").write_text(f'import std {{ Linear }}\ndim batch\n{block}model "net" = Net()\n')
    path = tmp_path / "net.arch"
    model = archspec.load(path)
    assert model.params.total == archspec.load(path, n=4).params.total == 20
    assert not archspec.diff(path, model) and len(archspec.compare(path, path).models) == 2
    assert archspec.cost(path, batch=1).work.macs == 16
    assert archspec.formula(path, ["n"]).at(n=3) == 12
    assert archspec.explain(path, 20).fits
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpt2").write_text("")
    with pytest.raises(archspec.ArchError, match="gpt2"):  # the file, and not the bundled model of that name
        archspec.load(Path("gpt2"))


# Names ---------------------------------------------------------------------------------------------------------------


INTERNAL = {"Arithmetic", "Text"}
"""Types inside of results that are details of the compiler."""


def reached() -> Iterator[type]:
    """Types of ours that exported functions return, and that fields and properties of these have."""
    seen: set[type] = set()
    waiting = [getattr(archspec, name) for name in archspec.__all__]
    while waiting:
        value = waiting.pop()
        if inspect.isclass(value) and value not in seen and value.__module__.startswith("archspec"):
            seen.add(value)
            yield value
            members = [m.fget if isinstance(m, property) else m for n, m in vars(value).items() if n[0] != "_"]
            written = [*inspect.get_annotations(value).values()]
            written += [m.__annotations__.get("return") for m in members if inspect.isfunction(m)]
        elif inspect.isfunction(value):
            written = [value.__annotations__.get("return")]
        else:
            continue
        source = inspect.getsource(sys.modules[value.__module__])
        for word in re.findall(r"\b[A-Z]\w*", " ".join(map(str, written))):
            home = re.search(rf"^ *from (archspec\S*) import .*\b{word}\b", source, re.MULTILINE)
            module = importlib.import_module(home[1]) if home else sys.modules[value.__module__]
            waiting.append(getattr(module, word, None))


def test_every_type_that_is_returned_is_exported_and_documented() -> None:
    types = {value for value in reached() if value.__name__ not in INTERNAL}
    assert {value.__name__ for value in types} <= set(archspec.__all__) and len(types) > 40
    page = (ROOT / "docs" / "python.md").read_text()
    for name in set(archspec.__all__) - {"__version__"}:
        assert f"`{name}" in page, name
    for value in types:
        assert inspect.getdoc(value), value
        (line,) = re.findall(rf"^\| `{value.__name__}` \|(.*)$", page, re.MULTILINE)
        properties = [name for name, member in vars(value).items() if isinstance(member, property)]
        for name in (*value._fields, *properties) if issubclass(value, tuple) else ():
            assert f"`{name}`" in line, f"{value.__name__}.{name}"


def test_functions_take_models_and_specs(tmp_path: Path) -> None:
    path = tmp_path / "net.arch"
    path.write_text(NET)
    for model in (archspec.load(path), archspec.loads(NET), path, str(path), f"{path}:net"):
        assert archspec.cost(model, batch=1, seq=2).model == "net"
        assert archspec.compare(model, path).models[0].params.total == 47
        assert not archspec.diff(model, path)
        assert archspec.formula(model, "n").at(n=4) == 47
        assert archspec.explain(model, 47).fits
    with pytest.raises(TypeError, match="takes no overrides"):
        archspec.explain(archspec.loads(NET), 47, n=5)


def test_a_hyperparameter_may_be_called_open() -> None:
    head = 'model "l" = L(3)\nlayer L(n, open = 2)(x [n]) -> [n] {\n'
    text = head + "  w: param [n]\n  s: param [open]\n  return x * .w + sum(axis = 0)(.s)\n}\n"
    model = archspec.loads(text, open=4)
    assert archspec.formula(model, "open").at(open=7) == 10
    assert archspec.formula(model, open=["open"]).at(open=7) == archspec.formula(model, ["open"]).at(open=7)
    assert archspec.formula(model, "n", "open").at(n=1) == 5


def test_a_text_names_its_model() -> None:
    text = NET + 'model "wide" = Net(n = 8)\n'
    assert archspec.loads(text, model="wide", bias=False).hyperparameters["n"] == 8
    for name, code in ((None, "which-model"), ("deep", "unknown-model")):
        with pytest.raises(archspec.ArchError) as caught:
            archspec.loads(text, name)
        assert [d.code for d in caught.value.diagnostics] == [code]
    with pytest.raises(archspec.ArchError, match="<text>:1"):
        archspec.loads("block {")


def test_a_model_shows_what_is_public() -> None:
    assert {name for name in dir(archspec.loads(NET)) if name[0] != "_"} == {
        *("name", "doc", "overrides", "warnings", "params", "hyperparameters", "tensors", "buffers", "parts"),
        *("inputs", "outputs", "count", "graph", "to_dict", "to_frame"),
    }
