"""Results in notebooks and as data: HTML, dictionaries, data frames."""

import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import checkpoints
import pytest

import archspec
from archspec.testing import main

SVG = "{http://www.w3.org/2000/svg}svg"


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    path = tmp_path / "model.safetensors"
    shapes = {t.name: t.shape for t in archspec.load("bert-base-uncased", **SMALL).tensors}
    shapes["extra"] = shapes.pop("pooler.dense.bias")
    checkpoints.write(path, shapes)
    return str(path)


SMALL: dict[str, Any] = {"vocab": 20, "hidden": 8, "layers": 3, "heads": 2, "ffn": 16, "positions": 9}
SETTINGS = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]

RESULTS: dict[str, tuple[Callable[[str], Any], list[str]]] = {
    "model": (lambda _: archspec.load("bert-base-uncased"), ["count", "bert-base-uncased"]),
    "count": (
        lambda _: archspec.load("t5-small", layers=2).count(by="block", depth=1),
        ["count", "t5-small", "--set", "layers=2", "--by", "block", "--depth", "1"],
    ),
    "cost": (lambda _: archspec.cost("gpt2", batch=1, depth=1), ["cost", "gpt2", "--batch", "1", "--depth", "1"]),
    "compare": (lambda _: archspec.compare("gpt2", "t5-small"), ["compare", "gpt2", "t5-small"]),
    "diff": (
        lambda _: archspec.diff("bert-base-uncased", "albert-base-v2"),
        ["diff", "bert-base-uncased", "albert-base-v2"],
    ),
    "explain": (lambda _: archspec.explain("gpt2", "124M"), ["explain", "gpt2", "124M"]),
    "audit": (lambda _: archspec.audit("bert-base-chinese"), ["audit", "bert-base-chinese"]),
    "verify": (
        lambda path: archspec.verify(archspec.load("bert-base-uncased", **SMALL), path),
        ["verify", "bert-base-uncased", "CHECKPOINT", *SETTINGS],
    ),
    "formula": (lambda _: archspec.formula("gpt2", "layers"), ["formula", "gpt2", "--open", "layers"]),
    "graph": (lambda _: archspec.load("gpt2").graph(), ["graph", "gpt2", "--to", "json"]),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_shown_and_read_anywhere(
    name: str, checkpoint: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make, words = RESULTS[name]
    found, command = make(checkpoint), [checkpoint if word == "CHECKPOINT" else word for word in words]
    assert len(repr(found)) < 200 and repr(found).startswith("<") and "\n" not in repr(found)
    fragment = ElementTree.fromstring(found._repr_html_())
    assert fragment.tag in (("div", SVG) if name in ("model", "graph") else ("div",))
    assert not {"script", "link", "img"} & {each.tag.rpartition("}")[2] for each in fragment.iter()}
    main([*command, *([] if name == "graph" else ["--format", "json"])])
    assert found.to_dict() == json.loads(capsys.readouterr().out)
    if name != "graph":
        main(command)
        assert str(found) + "\n" == capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(archspec.ArchError, match="requires pandas"):
        found.to_frame()


@pytest.mark.parametrize("name", RESULTS)
def test_frames(name: str, checkpoint: str) -> None:
    pandas = pytest.importorskip("pandas")
    found = RESULTS[name][0](checkpoint)
    frame = found.to_frame()
    assert isinstance(frame, pandas.DataFrame) and len(frame) and len(frame.columns) > 2
    if name == "model":
        assert frame["params"].sum() == 109_482_240 and str(frame["params"].dtype) == "int64"
    if name == "graph":
        assert frame["params"].sum() == archspec.load("gpt2").params.total
    if name == "compare":
        assert str(frame["difference"].dtype) == "Int64"  # some are missing


def test_a_graph_that_was_changed_shows_its_nodes() -> None:
    graph = archspec.load("gpt2").graph()
    graph.set_preview(lambda: "<svg/>")
    assert graph._repr_html_() == "<svg/>"
    graph.remove_node("lm_head")
    shown = ElementTree.fromstring(graph._repr_html_())
    assert "".join(shown.itertext()).startswith("Graph of 'gpt2': 189 nodes, 246 edges")
    rows = [["".join(cell.itertext()) for cell in row] for row in shown.iter("tr")]
    assert rows[:3] == [
        ["node", "type", "parameters"],
        ["transformer.wte", "Embedding", "38,597,376"],
        ["transformer.wpe", "Embedding", "786,432"],
    ]
    assert len(rows) == 1 + 2 + 12 * 6 + 1
    for same in (graph.copy(), pickle.loads(pickle.dumps(graph))):
        assert type(same) is type(graph) and same.graph["model"] == "gpt2" and list(same.edges) == list(graph.edges)
        assert "transformer.wte" in same._repr_html_()


def test_a_table_of_a_large_graph_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = archspec.load("gpt2").graph()
    for most, more in ((75, ""), (74, "1 more nodes with parameters")):
        monkeypatch.setattr("archspec.drawing.graph.network.MAX_ROWS", most)
        shown = ElementTree.fromstring(graph.copy()._repr_html_())
        assert len([*shown.iter("tr")]) == 1 + most
        assert "".join(shown.itertext()).endswith(more) and ("more nodes" in graph.copy()._repr_html_()) == bool(more)


def test_functions_show_what_the_commands_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    model = archspec.load("gpt2", layers=2)
    assert archspec.count("gpt2", "role", layers=2).to_dict() == model.count("role").to_dict()
    assert archspec.count(model, depth=1).to_dict() == model.count(depth=1).to_dict()
    assert archspec.graph("gpt2", "block", layers=2)._repr_html_() == model.graph("block")._repr_html_()
    assert archspec.figure(model)._repr_svg_().startswith("<svg")
    for function in (archspec.count, archspec.graph):
        with pytest.raises(TypeError, match="takes no overrides"):
            function(model, layers=3)
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    path = archspec.view(model)
    frame = ElementTree.fromstring(path._repr_html_())
    page = Path(path).read_text(encoding="utf-8")
    assert (frame.tag, frame.attrib["srcdoc"].split()) == ("iframe", page.split())
    assert opened == [Path(path).as_uri()]
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None)))
    Path(archspec.view(model)).unlink()
    Path(path).unlink()
    assert len(opened) == 1


def test_an_error_in_a_cell_is_its_message(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(archspec.ArchError) as caught:
        archspec.load("bert-bse")
    assert caught.value._render_traceback_() == str(caught.value).splitlines()
    shells = pytest.importorskip("IPython.core.interactiveshell")
    shell = shells.InteractiveShell()
    shell.run_cell("import archspec; archspec.load('bert-bse')")
    assert capsys.readouterr().out.strip() == str(caught.value)


CELLS = [
    "import archspec; model = archspec.load('bert-base-uncased'); model",
    "model.graph()",
    "model.count(by='role')",
    "archspec.cost(model, batch=1, seq=512)",
    "archspec.compare(model, 'roberta-base')",
    "archspec.diff(model, 'roberta-base')",
    "archspec.explain(model, '110M')",
    "archspec.audit('bert-base-article')",
    "archspec.formula(model, 'layers')",
    "print(model)",
    "model.to_frame()",
]


@pytest.mark.slow
def test_a_notebook_in_jupyter(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("nbclient", "ipykernel", "pandas"):
        pytest.importorskip(package)
    import nbclient
    import nbformat

    monkeypatch.setenv("PYTHONPATH", str(Path(archspec.__file__).parent.parent))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    for cell in notebook.cells:
        (output,) = cell.outputs
        if cell.source.startswith("print"):
            assert output.text.startswith("bert-base-uncased\n") and "109,482,240 parameters (109M)" in output.text
            assert max(map(len, output.text.splitlines())) <= 100 and "\x1b" not in output.text
            continue
        assert output.output_type == "execute_result" and "text/html" in output.data
        if "to_frame" not in cell.source:
            assert "\n" not in output.data["text/plain"] and len(output.data["text/plain"]) < 150
