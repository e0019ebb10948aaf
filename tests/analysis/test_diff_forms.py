"""`archspec diff` of one computation that is written in two ways: the normal forms are equal, and reports say so."""

import json
from pathlib import Path

import pytest
import yaml
from paths import DATA, read_spec
from small import load

import archspec
from archspec.testing import main

SPEC = read_spec("diff_forms_spec")

SPELLINGS: dict[str, list[dict[str, str]]] = yaml.safe_load((DATA / "spellings.yaml").read_text(encoding="utf-8"))


def spelled(what: str) -> str:
    text = SPEC
    for each in SPELLINGS[what]:
        assert each["old"] in text, each
        text = text.replace(each["old"], each["new"])
    return text if "causal_mask(" in text else text.replace(", causal_mask", "")


BASE = load(SPEC.replace(", causal_mask", ""))


@pytest.mark.parametrize("what", SPELLINGS)
def test_two_spellings_are_the_same_operations(what: str) -> None:
    other = load(spelled(what))
    for a, b in ((BASE, other), (other, BASE)):
        found = archspec.diff(a, b)
        assert not found and found.unified and not found.stopped
        assert "the same operations" in str(found)
        assert "some operations are written differently, but are equal up to rounding" in str(found)


def test_a_model_within_another_is_compared_by_normal_forms() -> None:
    inner = "block NAME(n = 4)(x [2, n]) -> [2, n] {\n  return x |> a: Linear(n, n) |> tanh |> b: Linear(n, n)END\n}\n"
    text = "import std { Linear }\n" + inner
    alone = load(text.replace("NAME", "Net").replace("END", ""))
    outer = "block Net(n = 4)(x [2, n]) -> [2, n] {\n  return x |> inner: Inner(n)END\n}\n"
    for last, is_same in ((" |> * 2.0 |> * 0.5", True), (" |> * 2.0 |> * 0.25", False)):
        for text_of_inner, text_of_outer in ((last, ""), ("", last)):
            within = load(
                (text.replace("NAME", "Inner")).replace("END", text_of_inner) + outer.replace("END", text_of_outer)
            )
            for a, b in ((alone, within), (within, alone)):
                found = archspec.diff(a, b)
                assert any(found.prefix) and found.unified == is_same and bool(found.operations) != is_same


def test_equal_value_numbers_need_no_normal_forms() -> None:
    found = archspec.diff(BASE, BASE)
    assert not found and not found.unified and "written differently" not in str(found)


def test_only_what_computes_something_else_is_listed() -> None:
    text = spelled("queries, keys and values by shape").replace("x * 0.5", "x * 0.25")
    found = archspec.diff(BASE, load(text))
    assert [(c.kind, c.fold.pattern, c.fold.ranges) for c in found.operations] == [("returns", "layer.*", "0-2")]
    assert found.unified and "elsewhere, some operations are written differently" in str(found)
    other = load(spelled("attention of products").replace("/ sqrt(2.0)", "/ 2.0"))
    ((change),) = archspec.diff(BASE, other).operations
    assert (change.kind, change.fold.pattern, change.what[:2]) == ("reads", "layer.*.out", "in")


CHANGES = {
    "a norm's epsilon": ("LayerNorm(n)", "LayerNorm(n, eps = 1e-6)"),
    "a strict mask": ("attention(causal = true)(q, k, v, mask)", "attention(window = 0, causal = true)(q, k, v, mask)"),
    "keys as values": ("(q, k, v, mask)", "(q, k, k + 0.0 * v, mask)"),
    "precision": ("x * 0.5", "x * 0.25 + float32(x) * 0.25"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_other_computations_differ(what: str) -> None:
    text = SPEC.replace(", causal_mask", "").replace(*CHANGES[what])
    assert archspec.diff(BASE, load(text)).operations


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.arch").write_text(SPEC.replace(", causal_mask", "") + '\nmodel "a" = Net()\n')
    (tmp_path / "b.arch").write_text(spelled("attention with scaled queries") + '\nmodel "b" = Net()\n')
    names = str(tmp_path / "a.arch"), str(tmp_path / "b.arch")
    assert main(["diff", *names]) == 0
    assert capsys.readouterr().out == (
        "no differences between a and b: the same 18 tensors, the same operations\n\n"
        "some operations are written differently, but are equal up to rounding\n"
    )
    assert main(["diff", *names, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["equal"], document["unified"], document["stopped"]) == (True, True, False)


def test_compare_says_whether_models_with_the_same_tensors_compute_the_same() -> None:
    same, scaled = (
        load(spelled("attention of products")),
        load(SPEC.replace(", causal_mask", "").replace("0.5", "0.25")),
    )
    found = archspec.compare(BASE, BASE, same, scaled, "bert-base-uncased")
    assert found.operations == ("equal", "equal", "equal up to rounding", "different", None)
    notes = [line for line in str(found).splitlines() if "have the same tensors" in line]
    assert notes == [
        "it (1) and it (2) have the same tensors and the same operations",
        "it (1) and it (3) have the same tensors and are equal up to rounding, although some operations are "
        "written differently",
        "it (1) and it (4) have the same tensors, but their operations differ; use `archspec diff` to list the "
        "differences",
    ]
    assert archspec.compare(BASE, same).to_dict()["operations"] == ["equal", "equal up to rounding"]
