"""Statements and imports of variants, as text; the heads of adapters' base models."""

import json
from typing import Any

import pytest
from small import load

import archspec
from archspec import ArchError, Source
from archspec.analysis.adapter import base
from archspec.analysis.variant import new
from archspec.analysis.variant.lines import find_imports, format_value
from archspec.compiler.literals import definition_names
from archspec.core.diagnostics import Report
from archspec.language.syntax.parse import parse
from archspec.pipeline.locate import configuration_location
from archspec.pipeline.model import get_compilation


def test_values_are_written_in_the_language() -> None:
    assert format_value('a "b" \\', 'a "b" \\') == '"a \\"b\\" \\\\"'
    assert format_value(("x", (1, 2.5), True), ["x", [1, 2.5], True]) == '["x", [1, 2.5], true]'
    assert format_value(None, None) == "none" and format_value(-3, -3) == "-3" and format_value((), []) == "[]"


def test_names_in_values() -> None:
    assert list(definition_names(["gelu", 3, ["relu", ("tanh", [4])], None])) == ["gelu", "relu", "tanh"]


def test_names_that_a_file_lacks_are_imported() -> None:
    text = """
import std { Linear, relu }
block Net(n = 4, f = relu, Part = Linear)(x [n]) -> [n] { return x |> f |> a: Part(n, n) }
model "net" = Net()
"""
    values: Any = {"f": "gelu"}
    unit = get_compilation(load(text, **values)).unit
    assert find_imports(unit, values) == ["gelu"]
    several: Any = {"f": ["silu", "tanh"], "Part": "Linear", "g": "gelu", "h": "gelu", "text": "of nothing"}
    assert find_imports(unit, several) == ["silu", "gelu"]
    assert find_imports(get_compilation(load(text)).unit, several) == []


def test_lines_of_long_imports_and_statements_are_filled() -> None:
    def rows(*lengths: int) -> list[int]:
        text = new._format_import("std", [*["n" * length for length in lengths], "m" * 99])
        return [line.count("n") for line in text.splitlines()[1:-2]]

    assert (
        rows(46, 46) == [92] and rows(46, 47) == [46, 47] and rows(20, 20, 50) == [90] and rows(20, 20, 51) == [40, 51]
    )

    def parts(*lengths: int) -> list[int]:
        text = new._wrap_statement(f"a({', '.join(['n = ' + '1' * length for length in lengths])}, m = {'2' * 99})")
        return [line.count("1") for line in text.splitlines()[1:-2]]

    assert parts(43, 43) == [86] and parts(43, 44) == [43, 44]


def test_long_imports_are_broken() -> None:
    names = [f"{'Name' * 4}{i}" for i in range(9)]
    short = "import std { Linear, Norm as LayerNorm }\n"
    assert new._format_import("std", ["Linear", "Norm as LayerNorm"]) == short
    text = new._format_import("std", names)
    lines = text.splitlines()
    assert lines[0] == "import std {" and lines[-1] == "}" and max(map(len, lines)) <= new.MAX_LINE_WIDTH
    assert [name for line in lines[1:-1] for name in line.strip().rstrip(",").split(", ")] == names
    assert all(line.startswith("  Name") for line in lines[1:-1]) and lines[-2].endswith("8")
    assert all(line.endswith(",") for line in lines[1:-2])
    assert new.MAX_LINE_WIDTH == 100
    fitting = new.MAX_LINE_WIDTH - len("import s {  }")
    assert (
        new._format_import("s", ["n" * fitting]).count("\n") == 1
        and new._format_import("s", ["n" * (fitting + 1)]).count("\n") == 3
    )
    report = Report()
    (found,) = parse(Source("a.arch", text), report).items
    assert not report.diagnostics and found


def test_long_statements_are_broken() -> None:
    short = 'model "net" = Net(n = 4, names = ["a, b = c", 3])'
    assert new._wrap_statement(short) == short
    values = [f"name{i} = [{i}, {i}]" for i in range(20)]
    text = new._wrap_statement(f'model "net" = Net({", ".join(values)})')
    lines = text.splitlines()
    assert lines[0] == 'model "net" = Net(' and lines[-1] == ")" and max(map(len, lines)) <= new.MAX_LINE_WIDTH
    assert len(lines) > 4 and " ".join(line.strip() for line in lines[1:-1]) == ", ".join(values)
    exact = "x" * (new.MAX_LINE_WIDTH - 3)
    assert (
        new._wrap_statement(f"a({exact})") == f"a({exact})"
        and new._wrap_statement(f"a({exact}y)") == f"a(\n  {exact}y\n)"
    )


def test_a_new_file_is_compared_with_the_model(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = archspec.load("bert-base-uncased", layers=1)
    path = str(tmp_path / "variant.arch")
    assert new.new_spec(path, model, {"layers": 1}).startswith("# A variant of bert-base-uncased.\n")
    monkeypatch.setattr(new, "compile_text_in_folder", lambda *_: [archspec.load("bert-base-uncased", layers=2)])
    with pytest.raises(
        ArchError, match=r"variant.arch does not compile to bert-base-uncased; this is a bug in archspec"
    ):
        new.new_spec(path, model, {"layers": 1})


# Bases of adapters ----------------------------------------------------------------------------------------------------

NET = "block Net(n = 4)(x [n]) -> [n] {\n  w: param [n]\n  return x * .w\n}\n"


def test_models_without_a_task_take_no_hyperparameters() -> None:
    model = load(NET)
    assert base._select_table(model, None, {}).params.total == 4
    assert base._select_table(model, "SEQ_CLS", {}).params.total == 4
    with pytest.raises(ArchError, match="unknown hyperparameter `labels` of it"):
        base._select_table(model, None, {"labels": 3})


def test_heads_take_numbers_that_they_have() -> None:
    model = archspec.load("bert-base-uncased", layers=1)
    found = base._select_table(model, "SEQ_CLS", {"labels": 3})
    assert found.params.total == model.params.total + 3 * 769
    assert found.model.startswith("bert-base-uncased (Bert")
    for given in ({"labels": 3, "odd": 4}, {"labels": [3]}):
        with pytest.raises(ArchError, match=r"unknown hyperparameter `(odd|labels)` of Bert"):
            base._select_table(model, "SEQ_CLS", given)  # type: ignore[arg-type]
    with pytest.raises(ArchError):
        base._select_table(model, "SEQ_CLS", {})
    with pytest.raises(ArchError, match="does not compile with the hyperparameters of bert-base-uncased"):
        base._select_table(model, "SEQ_CLS", {"labels": 0})


@pytest.mark.parametrize(
    ("task", "given", "added"),
    [("SEQ_CLS", {"num_labels": 3}, 3 * 769), ("TOKEN_CLS", {"id2label": {"0": "a", "1": "b"}}, None)],
)
def test_configurations_take_the_head_of_a_task(task: str, given: dict[str, Any], added: int | None) -> None:
    config = {"model_type": "bert", "architectures": ["BertModel"], "num_hidden_layers": 1}
    spec = configuration_location(json.dumps({**config, **given}))
    plain = archspec.load({**config})
    found = base._compile_configuration(spec, task, {})
    assert found.params.total != plain.params.total
    if added is not None:
        assert found.params.total == plain.params.total + added
    assert found.model.endswith("SequenceClassification)" if task == "SEQ_CLS" else "TokenClassification)")
    with pytest.raises(ArchError):
        base._compile_configuration(configuration_location(json.dumps(config)), task, {})
    named = base._compile_configuration(configuration_location(json.dumps(config)), task, {"labels": 5})
    assert named.params.total > found.params.total
