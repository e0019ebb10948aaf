"""Costs at sizes: those at which a model cannot run, bytes, and what the command prints."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small import DENSE, SCALE, load

import archspec
from archspec.testing import main

# Sizes ----------------------------------------------------------------------------------------------------------------


def refusal(model: archspec.Model | str, **given: Any) -> tuple[str, str]:
    with pytest.raises(archspec.ArchError) as caught:
        archspec.cost(model, **given)
    (found,) = caught.value.diagnostics
    return found.code, found.message


@pytest.mark.parametrize(("name", "most"), [("bert-base-uncased", 512), ("roberta-base", 512), ("albert-base-v2", 512)])
def test_a_sequence_longer_than_the_positions_has_no_cost(name: str, most: int) -> None:
    model = archspec.load(name)
    assert archspec.cost(model, seq=most)
    code, message = refusal(model, seq=most + 1)
    assert code == "bad-size" and message.startswith(
        f"at seq = {most + 1}, `embeddings.position_embeddings` is indexed"
    )


@pytest.mark.parametrize(
    ("step", "fits", "not_any_more"),
    [
        ("+ sum(axis = 0)(slice(axis = 0, stop = n)(.scale))", 9, 10),
        ("+ pick(axis = -1, index = 3)(x)", 4, 3),
        ("+ sum(axis = -1)(c: Conv1d(4, 4, kernel = 5)(x))", 5, 4),
        ("+ sum(axis = 0)(e: Embedding(9, 4)(arange(n)))", 9, 10),
        ("+ sum(axis = 0)(e: Embedding(9, 4)(arange(n) + 2))", 7, 8),
        ("+ sum(axis = 0)(e: Embedding(9, 4)(2 * arange(n)))", 5, 6),
        ("+ sum(axis = [0, 1])(e: Embedding(9, 4)(reshape([n, 1])(arange(n)) - arange(n) + 4))", 5, 6),
        ("+ sum(axis = [0, 1])(e: Embedding(9, 4)(min(reshape([n, 1])(arange(n)) * arange(n), 8)))", 99, None),
        ("+ sum(axis = 0)(e: Embedding(9, 4)(arange(n) % 9))", 99, None),
        ("+ sum(axis = 1)(e: Embedding(9, 4)(cumsum(axis = 1)(int(ids != 0))))", 8, 9),
        ("+ sum(axis = 1)(e: Embedding(9, 4)(ids))", 99, None),
        ("+ sum(axis = 0)(gather(axis = 0)(.scale, arange(n)))", 9, 10),
        ("+ sum(axis = 0)(e: Embedding(9, 4)(roll(1)(arange(n))))", 9, 10),
        ("+ sum(axis = 0)(e: Embedding(9, 4)(pad(axis = 0, after = 2)(arange(n))))", 9, 10),
    ],
)
def test_sizes_at_which_a_model_cannot_run_are_refused(step: str, fits: int, not_any_more: int | None) -> None:
    used = [name for name in ("Embedding", "Conv1d") if name in step]
    text = f"import std {{ {', '.join(used)} }}\n" if used else ""
    ids = ", ids int [batch, n]" if "ids" in step else ""
    text += f"dim batch, n\nblock Net()(x [batch, 4, n]{ids}) -> [batch, 4] {{\n  scale: param [9]\n"
    model = load(text + f"  return sum(axis = -1)(x) * sum(axis = 0)(.scale) {step}\n}}\n")
    assert archspec.cost(model, dims={"n": fits}).dims == {"batch": None, "n": fits}
    if not_any_more:
        code, message = refusal(model, dims={"n": not_any_more})
        assert code == "bad-size" and message.startswith(f"at n = {not_any_more}, ")


@pytest.mark.parametrize(
    ("statement", "fits", "message"),
    [
        ("y = e: Embedding(9, 4)(arange(n) + 1)", 8, "at n = 9, `e` is indexed with 9, but its largest index is 8"),
        ("y = e: Embedding(9, 4)(5 - arange(n))", 6, "at n = 7, `e` is indexed with -1, but its largest index is 8"),
        ("y = embedding(arange(n), .table)", 9, "at n = 10, `embedding` is indexed with 9, but its largest index is 8"),
        (
            "y = x\n  for t in 2..9 { y = y * real(pick(axis = 0, index = t)(arange(n))) }",
            None,
            "at n = 8, `pick` cannot select element 8 on an axis of size 8",
        ),
    ],
)
def test_messages_about_sizes(statement: str, fits: int | None, message: str) -> None:
    used = "import std { Embedding }\n" if "Embedding" in statement else ""
    table = "embedding(arange(1), .table)" if ".table" not in statement else "0.0"
    model = load(
        f"{used}dim batch, n\nblock Net()(x [batch, n, 4]) -> [batch, n, 4] {{\n  table: param [9, 4]\n  {statement}\n"
        f"  return x + y + {table}\n}}\n"
    )
    size = int(message.split()[3].rstrip(","))
    assert archspec.cost(model, dims={"n": size + 1 if fits is None else fits})
    assert refusal(model, dims={"n": size}) == ("bad-size", message)


def test_marked_positions_may_be_fewer_than_the_longest_text() -> None:
    """Which positions of a text take a row depends on the text, and so does whether the rows suffice."""
    model = load(
        "import std { put_rows }\ndim batch, seq, n\n"
        "block Net()(x [batch, seq, 4], ids int [batch, seq], rows [n, 4]) -> [batch, seq, 4] {\n"
        "  w: param [4]\n  return put_rows(x, ids == 9, rows) * .w\n}\n"
    )
    assert archspec.cost(model, 1, 1024, dims={"n": 3}).dims == {"batch": 1, "seq": 1024, "n": 3}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dims": {"sequence": 3}}, "unknown dimension `sequence`"),
        ({"batch": 0}, "from 1 to 2^63 - 1, found 0"),
        ({"batch": -3}, "found -3"),
        ({"batch": 2**63}, "found 9223372036854775808"),
        ({"batch": True}, "found True"),
        ({"batch": 1.0}, "found 1.0"),
        ({"batch": "1"}, "found '1'"),
        ({"batch": 1, "dims": {"batch": 2}}, "`batch` is specified as 1 and as 2"),
        ({"dtype": "float31"}, "unknown dtype `float31`"),
    ],
)
def test_what_cannot_be_asked(given: dict[str, Any], said: str) -> None:
    code, message = refusal("bert-base-uncased", **given)
    assert code == "usage" and said in message


@pytest.mark.parametrize(
    ("name", "help"),
    [("float31", "did you mean `float32`?"), ("quarter", "use float64, float32, float16, bfloat16, fp8, int8, int4")],
)
def test_known_types_are_told(name: str, help: str) -> None:
    for given in {"dtype": name}, {"past": 3, "cache_dtype": name}:
        with pytest.raises(archspec.ArchError) as caught:
            archspec.cost("gpt2", **given)  # pyright: ignore[reportArgumentType]
        assert caught.value.diagnostics[0].help == help


def test_sizes_beyond_all_measure_are_refused_or_exact() -> None:
    most = 2**63 - 1
    assert archspec.cost("bert-base-uncased", batch=most, seq=512).work.flops == most * 96_637_943_808
    text = "dim batch\nlayer Net()(x [batch, 7]) -> [7 * batch] {\n  w: param []\n"
    model = load(text + "  return reshape([7 * batch])(x) * .w\n}\n")
    assert archspec.cost(model, batch=most // 7).work.elementwise == most // 7 * 7
    code, message = refusal(model, batch=most // 7 + 1)
    assert code == "bad-size"
    assert message.endswith("the sizes of `reshape` are undefined: this dimension does not fit in 64 bits")


def test_there_is_an_end_to_following_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archspec.ir.fold.MAX_VISITED_CALLS", 100)
    assert refusal("bert-base-uncased")[0] == refusal("bert-base-uncased", seq=3)[0] == "budget"


# Bytes ----------------------------------------------------------------------------------------------------------------


def test_bytes_by_hand() -> None:
    model = load(
        DENSE
        + SCALE
        + """
block Net()(x [2, 3]) -> [2, 3] {
  seen: buffer int [5]
  mean: buffer [3]
  tie out.weight = a.weight
  h = x |> a: Dense(3) |> fixed: frozen Scale(3) |> out: Dense(3)
  return h + .mean + real(sum(axis = 0)(.seen))
}
"""
    )
    assert model.params == (9 + 3 + 3 + 3, 15, 3)
    memory = archspec.cost(model).memory
    assert (memory.dtype, memory.weights, memory.buffers) == ("float32", 4 * 18, 8 * 5 + 4 * 3)
    assert [(s.name, s.weights, s.gradients, s.optimizer, s.total) for s in memory.schemes] == [
        ("SGD", 72, 60, 0, 132),
        ("SGD with momentum", 72, 60, 60, 192),
        ("Adam", 72, 60, 120, 252),
        ("Adam, mixed precision", 36, 30, 180, 246),
    ]
    for found in memory.schemes:
        assert {type(number) for number in (found.weights, found.gradients, found.optimizer, found.total)} == {int}
    half = archspec.cost(model, dtype="bfloat16").memory
    assert (half.weights, half.buffers) == (2 * 18, 8 * 5 + 2 * 3)
    quarter = archspec.cost(model, dtype="int4").memory
    assert (quarter.weights, quarter.buffers, quarter.schemes) == (18 // 2, 8 * 5 + 2, ())
    assert {type(number) for number in (*quarter[1:3], *half[1:3])} == {int}
    assert [s.optimizer for s in half.schemes] == [0, 30, 60, 180]


# The command ----------------------------------------------------------------------------------------------------------


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["cost", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cost-bert.txt", "bert-base-uncased --batch 1 --seq 512"),
        ("cost-seq2seq.txt", "transformer-seq2seq --dim batch=1 --depth 2"),
        ("cost-albert.md", "albert-base-v2 --batch 8 --seq 128 --format markdown --set layers=3"),
        ("cost-bert.csv", "bert-base-uncased --batch 1 --depth 1 --format csv --set layers=2"),
        ("cost-bert.json", "bert-base-uncased --batch 1 --seq 512 --format json --depth 1 --set layers=2"),
    ],
)
def test_what_is_printed(
    name: str, arguments: str, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]
) -> None:
    golden(name, said(capsys, *arguments.split()))


def test_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(said(capsys, "roberta-base", "--seq", "16", "--format", "json", "--dtype", "float16"))
    cost = archspec.cost("roberta-base", seq=16, dtype="float16")
    assert document["dims"] == {"batch": None, "seq": 16} and document["flops_per_mac"] == 2
    assert document["work"]["flops"] == str(cost.work.flops)
    assert document["memory"]["weights"] == 2 * archspec.load("roberta-base").params.total
    rows = {row["address"]: row for row in document["rows"]}
    assert rows[""]["macs"] == str(cost.work.macs)
    assert rows["encoder.layer.11.attention.self.(scores)"]["macs"] == f"{16 * 16 * 768}*batch"
    assert {module.address for module in cost.modules} <= set(rows)


def test_an_answer_needs_no_heavy_library() -> None:
    code = (
        "import sys\nfrom archspec.app.cli import main\n"
        "main(['cost', 'albert-base-v2', '--seq', '9', '--format', 'json'])\n"
        "print(sorted({'networkx', 'torch', 'rich', 'sympy', 'lark'} & set(sys.modules)), file=sys.stderr)"
    )
    root = Path(archspec.__file__).parent.parent
    for _ in range(2):  # the first may have to make the parser's tables
        run = subprocess.run([sys.executable, "-c", code], cwd=root, check=True, capture_output=True, text=True)
    assert run.stderr == "[]\n"
