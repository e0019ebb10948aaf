"""`archspec audit`: published calculations, line by line."""

import contextlib
import io
import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from paths import DATA, GOLDEN, ROOT
from sections import read_sections

import archspec
from archspec import ArchError, Audit, JudgedLine
from archspec.testing import main

PUBLISHED = sorted(path.stem for path in (ROOT / "specs" / "audits").glob("*.yaml"))

pytestmark = pytest.mark.usefixtures("explainers_made_once")

AUDITS = ROOT / "specs" / "audits"


def printed(*arguments: str) -> tuple[str, str, int]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(arguments)
    return out.getvalue(), err.getvalue(), status


@cache
def audited(name: str) -> Audit:
    return archspec.audit(name)


@pytest.fixture
def audited_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command shows audits that other tests look at, too."""
    monkeypatch.setattr("archspec.app.cli.run.audit.audit", audited)


def lines(name: str) -> dict[str, JudgedLine]:
    return {judged.line.name: judged for judged in audited(name).lines}


def verdicts(found: dict[str, JudgedLine], verdict: str) -> dict[str, Fraction | None]:
    return {name: judged.off for name, judged in found.items() if judged.verdict == verdict}


def test_an_error_is_reported_once_and_a_fraction_in_full(tmp_path: Path) -> None:
    text = "title: t\nspec: gpt2\nlines:\n"
    text += "  - {line: a, claimed: 38597367, arithmetic: vocab * hidden, select: transformer.wte.weight}\n"
    text += "  - {line: b, claimed: 17777115, arithmetic: params / 7}\n"
    (tmp_path / "t.yaml").write_text(text)
    error, part = archspec.audit(tmp_path / "t.yaml").lines
    swapped = "9 too little, two digits are swapped: 67 for 76"
    assert error.why == ("`vocab * hidden` is 38,597,376", swapped, "the model has 38,597,376")
    assert part.why == ("`params / 7` is 17,777,115.43", "0.42857 too little")


# The four published calculations


@pytest.mark.usefixtures("audited_once")
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_report_on_a_published_calculation(name: str, golden: Callable[[str, str], None]) -> None:
    out, err, status = printed("audit", name)
    assert err == "" and status == (0 if audited(name).clean else 1)
    golden(f"audit-{name}.txt", f"$ archspec audit {name}\n{out}[{status}]\n")


def test_a_bundled_audit_is_a_file_like_any_other() -> None:
    name = "bert-base-chinese"
    assert printed("audit", str(AUDITS / f"{name}.yaml")) == printed("audit", name)


def test_a_calculation_that_leaves_things_out_is_right_under_its_convention() -> None:
    found = lines("bert-base-article")
    assert verdicts(found, "wrong") == {"feed-forward": 630} and not verdicts(found, "carried")
    assert list(verdicts(found, "convention")) == ["attention, 12 layers", "feed-forward, 12 layers", "total"]
    assert found["total"].why == ("without the pooler, without the biases outside the norms",)
    assert [float(found[f"share of the {part}"].counted or 0) for part in ("embeddings", "transformer layers")] == [
        pytest.approx(23_835_648 / 109_482_240),
        pytest.approx(85_054_464 / 109_482_240),
    ]


def test_an_error_is_found_in_its_line_and_later_lines_are_judged_on_their_own() -> None:
    found = lines("bert-by-hand")
    assert verdicts(found, "wrong") == {"a layer": 1_000, "token embedding": 8_960, "total": 21_960}
    assert verdicts(found, "carried") == {"embeddings": 8_960, "12 layers": 12_000}
    assert found["a layer"].own == 7_080_960
    assert found["total"].own == 109_417_952 and found["total"].meant == 109_396_992
    assert "1,000 too much, one digit is wrong: 8 for 7" in found["total"].why
    assert [why for why in found["total"].why if "carried forward" in why] == [
        '12,000 too much carried forward from "12 layers"',
        '8,960 too much carried forward from "embeddings"',
    ]


def test_a_total_that_is_short_names_every_candidate() -> None:
    found = lines("bert-discussion")
    layer = found["large, a layer"]
    assert (layer.verdict, layer.off, layer.own) == ("wrong", -4_096, 12_596_224)
    (guesses,) = [why for why in layer.why if why.startswith("guesses: ")]
    assert all(w in guesses for w in ("the norms", "role `attention`", "`encoder.layer.0.intermediate.dense.bias`"))
    assert verdicts(found, "carried") == {"large, 24 layers": -98_304, "large, total": -98_304}
    assert list(verdicts(found, "wrong")) == ["the quoted claim", "large, a layer"]
    assert "it is 1,000 times too large" in found["the quoted claim"].why
    assert found["large, heading"].why[-1].endswith("no convention gives 340M")


def test_a_calculation_without_a_mistake() -> None:
    audit = audited("bert-base-chinese")
    assert audit.clean and {judged.verdict for judged in audit.lines} == {"right"}


NUMBERS = {
    "bert-base-article": """30522 12 768 512 2 12 3702 23835648 22.7 28311552 27 38400 37.5 56623104 54 108808704 104
        20 80""",
    "bert-by-hand": """768 12 3072 30522 512 2,359,296 4,718,592 3072 7,081,960 23,449,856 393,216 1536 23,844,608
        84,983,520 589,824 109,418,952 110 1024 24 340""",
    "bert-discussion": """110M 47 10152448 23,837,184 23,440,896 393,216 1,536 7,087,872 85,054,464 590,592 109,482,240
        31,782,912 31,254,528 524,288 2,048 12,592,128 302,211,072 1,049,600 335,043,584 340M 1,048,576 1,024 4,194,304
        4,096 768""",
    "bert-base-chinese": """768 12 3072 12 21128 512 2 21642 16,621,056 16,622,592 590,592 2,362,368 2,359,296 4,722,432
        3,072 7,087,872 85,054,464 102267648 102.3""",
}
"""Every number that the published calculations claim."""


@pytest.mark.parametrize("name", NUMBERS)
def test_every_published_number_is_in_its_audit(name: str) -> None:
    claimed = {number.text for judged in audited(name).lines for number in judged.line.claimed}
    claimed |= {word for text in claimed for word in text.split()}
    assert set(NUMBERS[name].split()) <= claimed


# Judging


def write(folder: Path, text: str, head: str = "title: t\nspec: bert-base-uncased\n") -> str:
    path = folder / "a.yaml"
    path.write_text(f"{head}lines:\n{text}")
    return str(path)


def judged(folder: Path, *texts: str, head: str = "title: t\nspec: bert-base-uncased\n") -> Audit:
    text = "".join(f"  - {{line: l{n}, {text}}}\n" for n, text in enumerate(texts))
    return archspec.audit(write(folder, text, head))


def test_lines_are_judged(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    """All in one audit: they do not refer to each other, and so are judged by themselves."""
    written = (GOLDEN / "audit-lines.txt").read_text(encoding="utf-8").splitlines()
    texts = [line for line in written if not line.startswith(" ")]
    shown: list[str] = []
    for text, line in zip(texts, judged(tmp_path, *texts).lines, strict=True):
        off = f", off by {line.off}" if line.off is not None else ""
        shown += [f"{text}\n", f"  {line.verdict}{off}\n", *(f"  {reason}\n" for reason in line.why)]
    golden("audit-lines.txt", "".join(shown))


def test_active_parameters_are_those_that_a_token_uses(tmp_path: Path) -> None:
    lines = judged(
        tmp_path,
        "claimed: 46.7B active, select: '*'",
        "claimed: 12.9B active, select: '*'",
        "claimed: 1.34B active, select: '*.self_attn.*'",
        "claimed: 46.7B, select: '*'",
        "claimed: 11.3B active, select: '*.experts.*'",
        "claimed: 45.1B active, select: '*.experts.*'",
        "claimed: 1342177281, select: '*.self_attn.*'",
        head="title: t\nspec: mixtral-8x7b\n",
    ).lines
    expected = ["wrong", "convention", "right", "right", "convention", "wrong", "wrong"]
    assert [line.verdict for line in lines] == expected
    assert lines[0].why == lines[5].why == ("this counts the experts that a token does not use",)
    assert lines[6].why == ("1 too much, one digit is wrong: 1 for 0",)


def test_units_have_the_values_of_the_file(tmp_path: Path) -> None:
    head = "title: t\nspec: bert-base-uncased\nunits: {one: 1, M: 1024 * 1024}\n"
    found = judged(tmp_path, "claimed: 3072 one, arithmetic: ffn", "claimed: 3.0 M, arithmetic: ffn * 1024", head=head)
    assert [line.verdict for line in found.lines] == ["right", "right"]


def test_what_uses_a_line_that_cannot_be_judged_is_not_reported_again(tmp_path: Path) -> None:
    texts = (
        "claimed: 1, select: nothing.*",
        "claimed: 2, arithmetic: '2 * \"l0\"'",
        "claimed: 2, arithmetic: '2 * \"l1\"'",
    )
    with pytest.raises(archspec.ArchError) as caught:
        judged(tmp_path, *texts, "claimed: 3, arithmetic: 1 / 0", "claimed: 4, arithmetic: 1 / 0 + 1")
    assert [found.message for found in caught.value.diagnostics] == [
        "`nothing.*` matches no tensor",
        "division by zero",
        "division by zero",
    ]


def test_a_share_of_what_is_left_out_again_is_refused(tmp_path: Path) -> None:
    with pytest.raises(archspec.ArchError, match="cannot compute a share: `of` selects no parameters"):
        judged(tmp_path, "claimed: 50 %, select: '*', of: ['*.bias', '!*']")


def test_errors_that_cancel_carry_nothing_on(tmp_path: Path) -> None:
    texts = ("claimed: 769, arithmetic: hidden", "claimed: 767, arithmetic: hidden")
    audit = judged(tmp_path, *texts, 'claimed: 1536, arithmetic: \'"l0" + "l1"\'')
    assert [found.verdict for found in audit.lines] == ["wrong", "wrong", "right"]


def test_a_wrong_formula_is_not_taken_for_what_was_meant(tmp_path: Path) -> None:
    audit = judged(
        tmp_path, "claimed: 100, arithmetic: 10 * 10, select: pooler.*", "claimed: 200, arithmetic: '2 * \"l0\"'"
    )
    assert [(found.verdict, found.off) for found in audit.lines] == [
        ("wrong", 100 - 590_592),
        ("carried", 200 - 1_181_184),
    ]


def test_a_hyperparameter_called_total_is_not_the_count(tmp_path: Path) -> None:
    net = 'block Net(total = 4)(x [3]) -> [3] {\n  t: unused param [total, 5]\n  return x\n}\nmodel "net" = Net()\n'
    (tmp_path / "net.arch").write_text(net)
    audit = judged(tmp_path, "claimed: 24, arithmetic: total + params", head="title: t\nspec: net.arch\n")
    assert audit.clean


@pytest.mark.usefixtures("audited_once")
def test_the_documents() -> None:
    document = audited("bert-by-hand").to_dict()
    assert document["format"] == 1 and not document["clean"]
    assert document["verdicts"] == {"right": 12, "convention": 3, "wrong": 3, "carried": 2}
    row = next(row for row in document["lines"] if row["line"] == "a layer")
    assert (row["value"], row["own"], row["model"], row["off"]) == (7_081_960, 7_080_960, 7_087_872, 1_000)
    assert json.loads(printed("audit", "bert-base-chinese", "--format", "json")[0])["clean"]
    for format in ("yaml", "csv", "markdown"):
        assert "16,621,056" in printed("audit", "bert-base-chinese", "--format", format)[0]


def test_a_spec_beside_the_audit(tmp_path: Path) -> None:
    shutil.copy(ROOT / "specs" / "text" / "bert.arch", tmp_path / "mine.arch")
    head = "title: t\nspec: mine.arch:bert-base-uncased\n"
    found = judged(tmp_path, "claimed: 590592, select: pooler.*", head=head)
    assert found.clean and [line["verdict"] for line in found.to_dict()["lines"]] == ["right"]


# Malformed files


GOOD = "title: t\nspec: bert-base-uncased\nlines:\n  - line: a\n    claimed: 3072\n    arithmetic: ffn\n"
BAD = {
    **read_sections(DATA / "audits.txt"),
    "an empty file": "",
    "nested too deep": "title: " + "[" * 100_000,
    "a list that is not closed": "title: t\nlines: [a",
    "too many lines": GOOD.partition("lines:")[0] + "lines:\n" + "- a\n" * 10_001,
    "a character that YAML does not allow": GOOD.replace("title: t", "title: \x07"),
}


def test_the_limit_of_models(tmp_path: Path) -> None:
    net = 'block Net(n = 1)(x [3]) -> [3] {\n  t: unused param [n]\n  return x\n}\nmodel "net" = Net()\n'
    (tmp_path / "net.arch").write_text(net)
    lines = [f"claimed: {n}, arithmetic: n, set: {{n: {n}}}" for n in range(1, 34)]
    assert judged(tmp_path, *lines[:32], *lines[:2], head="title: t\nspec: net.arch\n").clean
    with pytest.raises(archspec.ArchError, match=r"error\[budget\]: too many models in an audit: the limit is 32\n"):
        judged(tmp_path, *lines, head="title: t\nspec: net.arch\n")


def test_a_malformed_file_gets_a_diagnostic_with_its_place(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    said = ""
    for what, text in BAD.items():
        (tmp_path / "a.yaml").write_text(text)
        with contextlib.chdir(tmp_path):
            out, err, status = printed("audit", "a.yaml")
            with pytest.raises(ArchError) as caught:
                archspec.audit("a.yaml")
        assert (out, status) == ("", 1) and "--> a.yaml:" in err, what
        assert all(found.span is not None and found.span.start <= found.span.end for found in caught.value.diagnostics)
        said += f"=== {what}\n{err}\n"
    golden("audit-errors.txt", said)


TEXTS = [path.read_text(encoding="utf-8") for path in sorted(AUDITS.glob("*.yaml"))]
PIECES = [
    "'",
    '"',
    "[",
    "]",
    "{",
    "}",
    ":",
    "- ",
    "\n",
    "    ",
    "*",
    "&a",
    "!x",
    "**",
    "/ 0",
    "%",
    "\t",
    "\\U",
    "???",
    "9" * 30,
]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_file_does_more_than_fail(data: st.DataObject, tmp_path: Path) -> None:
    """A bundled audit with pieces taken out and others put in is judged, or refused with places in it."""
    text = data.draw(st.sampled_from(TEXTS))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = start + data.draw(st.sampled_from([0, 0, 1, 5, 40, 400]))
        text = text[:start] + data.draw(st.sampled_from(PIECES)) + text[end:]
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    try:
        assert archspec.audit(str(path)).lines
    except ArchError as error:
        assert error.diagnostics and all(d.span is not None for d in error.diagnostics)
        assert "internal" not in {d.code for d in error.diagnostics}
