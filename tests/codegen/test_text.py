"""The Python files that models are translated to: their text, and what keeps a file from being written."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
import torch_compare
import torch_texts
from paths import DATA, ROOT
from small import DENSE, load

import archspec
from archspec.codegen.build import torch_source
from archspec.codegen.python import layout
from archspec.codegen.scope.names import RESERVED_MODULE_NAMES
from archspec.testing import main

GOLDEN = {
    "bert-base-uncased": "bert-base-uncased",
    "transformer-seq2seq": "transformer-seq2seq",
    "gpt2": "gpt2",
    "small-decoder": f"{ROOT / 'specs' / 'std' / 'examples.arch'}:small-decoder",
    "everything": f"{DATA / 'translated' / 'everything.arch'}",
}
TRANSLATED = {
    "attention": ("gqa", "free only", "free stack"),
    "further": ("dropped", "enlarged", "widened", "looked", "ranks", "given", "idle", "places", "mixed"),
    "loops": ("tab", "numbered"),
    "outputs": ("kinds", "absent", "six", "best"),
    "partials": ("further-narrow",),
    "shapes": ("dots", "forward"),
    "statements": ("early", "numbers", "begun"),
    "twice": ("twice",),
    "uses": (
        "ties",
        "multiples",
        "shared",
        "convolved",
        "arranged",
        "made",
        "norms",
        "choices",
        "meetings",
        "computed",
    ),
}
"""By file, models of which each has a text that the others have not."""

FILES = sorted(path.stem for path in (DATA / "translated").glob("*.arch"))

FAMILIES = (
    "albert-base-v2-mlm",
    "bart-base",
    "gpt2",
    "llama-3.2-1b",
    "modernbert-base-mlm",
    "t5-small",
    "t5-v1_1-base",
)


@pytest.mark.parametrize("name", GOLDEN)
def test_the_text_of_a_file(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"torch/{name}.txt", torch_source(archspec.load(GOLDEN[name])))


@pytest.mark.parametrize("file", TRANSLATED)
def test_the_text_of_unusual_files(file: str, golden: Callable[[str, str], None]) -> None:
    path = DATA / "translated" / f"{file}.arch"
    bodies = [torch_source(archspec.load(f"{path}:{model}")) for model in TRANSLATED[file]]
    golden(f"torch/{file}.txt", "\n\n".join(body.partition("nn\n\n\n")[2] for body in bodies))


@pytest.mark.parametrize("file", [file for file in FILES if file not in ("everything", "further", "twice", "uses")])
def test_texts_stay_those_that_slow_tests_run(file: str, golden: Callable[[str, str], None]) -> None:
    """By their checksums: what differs is to be looked at, and run by the slow tests."""
    path = DATA / "translated" / f"{file}.arch"
    models = [name for name in torch_texts.MODEL.findall(path.read_text()) if name not in TRANSLATED.get(file, ())]
    golden(f"torch/sums/{file}.txt", sums({name: archspec.load(f"{path}:{name}") for name in models}))


def test_what_was_once_wrong_stays_what_slow_tests_run(golden: Callable[[str, str], None]) -> None:
    models: dict[str, archspec.Model] = {}
    for path in sorted((DATA / "faults").glob("*.arch")):
        for name in torch_texts.MODEL.findall(path.read_text(encoding="utf-8")):
            models[f"{path.stem}:{name}"] = archspec.load(f"{path}:{name}")
    golden("torch/sums/faults.txt", sums(models))


def test_texts_drawn_at_random_stay_those_that_slow_tests_run(
    golden: Callable[[str, str], None], tmp_path: Path
) -> None:
    golden("torch/sums/random.txt", sums({text.name: text.load(tmp_path) for text in torch_texts.random_texts()}))


def sums(models: Mapping[str, archspec.Model]) -> str:
    return "".join([f"{crc32(torch_source(model).encode()):08x} {name}\n" for name, model in models.items()])


@pytest.mark.parametrize(
    "specs",
    [GOLDEN, pytest.param({name: name for name in FAMILIES}, marks=pytest.mark.slow)],
    ids=["everyday", "families"],
)
def test_files_are_written_as_people_write_them(specs: dict[str, str], tmp_path: Path) -> None:
    """ruff finds nothing in them, by its own rules and by this project's, and would lay them out as they are."""
    chains = {"tables": "outputs.arch:tables", "attends": "attention.arch:attends", "biased": "attention.arch:biased"}
    chains = {name: f"{DATA / 'translated' / spec}" for name, spec in chains.items()}
    for name, spec in (specs | chains).items():
        (tmp_path / f"{name}.py").write_text(torch_source(archspec.load(spec)), encoding="utf-8")
    assert torch_compare.lint(tmp_path) == ""
    assert torch_compare.layout(tmp_path) == ""


@pytest.mark.slow
def test_ruff_finds_no_mistake_in_unusual_files(tmp_path: Path) -> None:
    """What the specs of the slow tests are translated to has no undefined or unused names."""
    for path in sorted([*(DATA / "translated").glob("*.arch"), *(DATA / "faults").glob("*.arch")]):
        for i, model in enumerate(torch_texts.MODEL.findall(path.read_text(encoding="utf-8"))):
            source = torch_source(archspec.load(f"{path}:{model}"))
            (tmp_path / f"{path.stem}{i}.py").write_text(source, encoding="utf-8")
    assert torch_compare.lint(tmp_path) == ""


def test_of_two_definitions_with_one_name_the_outer_file_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "part.arch").write_text(DENSE.replace("Dense", "Net"), encoding="utf-8")
    (tmp_path / "it.arch").write_text(
        'import "part.arch" { Net as Part }\nblock Net(n = 2)(x [n]) -> [n] {\n  return x |> a: Part(n)\n}\n'
        'model "it" = Net()\n',
        encoding="utf-8",
    )
    source = torch_source(archspec.load(str(tmp_path / "it.arch")))
    assert "self.a = Net2(n)" in source and source.endswith("    return Net()\n")


def test_what_follows_from_defaults_is_left_to_the_class() -> None:
    """`ffn` is 4 times `hidden` unless it is given."""
    assert torch_source(archspec.load("gpt2")).endswith("    return GPT2LMHeadModel()\n")
    assert torch_source(archspec.load("gpt2", ffn=3072)).endswith("    return GPT2LMHeadModel(ffn=3072)\n")


ARGUMENTS = {
    "every size": ("n = 4, k = 2", "x * k", "n: int = 4, k: int = 2"),
    "none but sizes": ("n = 4, k = 2.5, flag = true, f = doubled", "f(x) * k if flag else x", "n: int = 4"),
    "not one with a settled condition": ("n = 4, k = 2", "x * k if k > 1 else x", "n: int = 4"),
    "nor one behind a size": ("n = 4, k = 2", "halves(x) * k", "k: int = 2"),
    "nor one behind a name": ("n = 4, k = 2", "parted(3 * k)(x)", "n: int = 4"),
    "nor what a default is made of": ("n = 4, k = 2, wide = k > 1", "x * k if wide else x", "n: int = 4"),
    "nor one that a loop counts to": ("n = 4, k = 2", "counted(k)(x)", "n: int = 4"),
    "nor one that a declared size equals": ("n = 4, k = 2", "four(x) * k", "k: int = 2"),
    "nor one in a real number": ("n = 4, k = 2", "x * n if k / 4 < 1.5 else x", "n: int = 4"),
    "nor one behind an operation": ("n = 4, k = 2", "x * n if min(k, 3) > 1 else x", "n: int = 4"),
    "nor one that picks": ("n = 4, k = 2", "x * n if [true, false, true][k] else x", "n: int = 4"),
    "where sizes cancel out": ("n = 4, k = 2", "x * k if k // k == 1 else x", "n: int = 4, k: int = 2"),
    "nor items of a list": ("n = 4, k = [2, 2]", "x * n * k[0] if k[0] == k[1] else x", "n: int = 4"),
    "nor one that is 0": ("n = 4, k = 0", "x * n + k if k == 0 else x", "n: int = 4"),
    "where it holds for all": ("n = 4, k = 2", "x * k if k > 0 else x", "n: int = 4, k: int = 2"),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_are_sizes_for_which_the_code_is_right(case: str) -> None:
    hyperparameters, value, arguments = ARGUMENTS[case]
    text = f"""
dim m
fn doubled(x [...]) -> [...] {{ return x * 2 }}
fn halves(x [m]) -> [m] {{ return x * 0.5 if m > 3 else x }}
fn parted(wide)(x [...]) -> [...] {{
  half = wide // 2
  return x * half if half > 2 else x
}}
fn counted(times)(x [...]) -> [...] {{
  h = x
  for i in 0..times {{ h = h + i if i < 9 else h * 2 }}
  return h
}}
fn four(x [4]) -> [4] {{ return x + 1.0 }}
block Net({hyperparameters})(x [n]) -> [n] {{
  w: param [n]
  return ({value}) + .w
}}
"""
    assert f"def __init__(self, {arguments}) -> None:" in torch_source(load(text))


@pytest.mark.parametrize(
    ("condition", "arguments"),
    [
        ("seq == seq", "self, n: int = 4, k: int = 4"),
        ("seq * n == seq * k", "self"),
        ("seq * n != n * seq", "self"),
        ("n - n == 0", "self, n: int = 4, k: int = 4"),
        ("n >= k - k", "self, n: int = 4, k: int = 4"),
        ("n > k - k", "self, n: int = 4, k: int = 4"),
        ("n > k - 1", "self"),
        ("1 < n", "self, k: int = 4"),
        ("n >= 1", "self, n: int = 4, k: int = 4"),
        ("n < 1", "self, n: int = 4"),
        ("1 > n", "self, n: int = 4"),
        ("n >= 2", "self, k: int = 4"),
        ("n + k >= 2", "self, n: int = 4, k: int = 4"),
        ("1 <= n", "self, n: int = 4, k: int = 4"),
        ("0 != n", "self, n: int = 4, k: int = 4"),
        ("2 ** k > 0", "self, n: int = 4"),
        ("-n < 0", "self, n: int = 4, k: int = 4"),
        ("-n == k - 8", "self"),
        ("k // 3 == 1", "self, n: int = 4"),
        ("n * k == k * n", "self, n: int = 4, k: int = 4"),
        ("min(n, 9) == 4", "self, k: int = 4"),
        ("k in [3, 4]", "self, n: int = 4"),
        ("k not in [n]", "self"),
        ("none == none or n > 7", "self, n: int = 4, k: int = 4"),
    ],
)
def test_conditions_keep_the_sizes_that_decide_them(condition: str, arguments: str) -> None:
    text = f"""
dim seq
block Net(n = 4, k = 4)(x [seq, n]) -> [seq, n] {{
  w: param [n]
  return x * k if {condition} else x + .w
}}
"""
    assert f"def __init__({arguments}) -> None:" in torch_source(load(text.replace("* k if", "* .w * k if")))


LONGER = {
    "the bound": "h = x + .w\n for t in 0..(seq + k - 2) { h = h * 0.5 + x }",
    "a name of the bound": "h = x + .w\n m = seq + k - 2\n for t in 0..m { h = h * 0.5 + x }",
    "a name of a part of it": "h = x + .w\n m = seq + k\n last = m - 2\n for t in 0..last { h = h * 0.5 + x }",
    "a function of numbers": "h = x + .w\n m = below(seq + k)\n for t in 0..m { h = h * 0.5 + x }",
    "the size of a tensor": "long = halved(concat(axis = 0)(x, full([k, n], 1.0)))\n h = x + sum(axis = 0)(long) + .w",
}


@pytest.mark.parametrize("case", LONGER)
def test_a_size_that_a_loop_over_a_dimension_counts_to_is_no_argument(case: str) -> None:
    """With another one, the count could be negative, which the language refuses and PyTorch ignores."""
    text = f"""
dim seq, rows
fn below(count) {{ return count - 2 }}
fn halved(x [rows, ...]) -> [rows, ...] {{
  for t in 0..(rows - 2) {{ x = x * 0.5 }}
  return x
}}
block Net(n = 4, k = 2)(x [seq, n]) -> [seq, n] {{
  w: param [n]
  {LONGER[case]}
  return h
}}
"""
    assert "def __init__(self, n: int = 4) -> None:" in torch_source(load(text))


def test_an_output_that_an_optional_input_decides_on_may_be_none() -> None:
    text = """
dim batch, n
block Net(k = 2)(x [batch, n], y [batch, n] = none) -> (double [batch, n], product [batch, n]?) {
  return x * k, x * y if y != none
}
"""
    assert "    double: Tensor\n    product: Tensor | None\n" in torch_source(load(text))


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("matmul(x * .w, ids) + x * ids", "torch.matmul(x * self.w, ids.to(x.dtype)) + x * ids"),
        ("linear(ids, x * .w)", "F.linear(ids.to(x.dtype), x * self.w)"),
        ("layer_norm(0.0)(ids, .w)", "F.layer_norm(ids.to(self.w.dtype), self.w.shape, self.w, None, 0.0)"),
        ("group_norm(2, 0.0)(ids, sum(axis = 0)(x * .w))", "F.group_norm(ids.to(x.dtype), 2, (x * self.w).sum(0)"),
        ("where(ids > 2, x * .w, ids)", "torch.where(ids > 2, x * self.w, ids)"),
    ],
)
def test_integers_are_converted_where_pytorch_does_not(expression: str, code: str) -> None:
    """`matmul` needs one element type, for example; `*` promotes."""
    text = f"""
layer It(n = 4)(x [n, n], ids int [n, n]) -> [n, n] {{
  w: param [n, n]
  return {expression} + x
}}
"""
    assert code in torch_source(load(text))


def test_several_outputs_have_a_type_with_their_names() -> None:
    text = """
layer Pick(n)(x [n]) -> (v [2], i int [2]) {
  w: param [n]
  return topk(k = 2, axis = 0)(x * .w)
}
block It(n = 4)(x [n]) -> (v [2], i int [2]) {
  return x |> p: Pick(n)
}
"""
    source = torch_source(load(text))
    assert "class ItOutput(NamedTuple):\n    v: Tensor\n    i: Tensor\n" in source
    assert '"""x [n] -> v [2], i int [2]."""' in source and "return ItOutput(*self.p(x))" in source


def test_initializers() -> None:
    fills = {
        "constant(0.0)": "zeros_(self.w)",
        "constant(1.0)": "ones_(self.w)",
        "constant(0.5)": "constant_(self.w, 0.5)",
        "normal(0.02)": "normal_(self.w, std=0.02)",
        "truncated_normal(0.02)": "trunc_normal_(self.w, std=0.02, a=-2 * 0.02, b=2 * 0.02)",
        "uniform(-0.1, 0.1)": "uniform_(self.w, -0.1, 0.1)",
        "xavier_uniform()": "xavier_uniform_(self.w)",
    }
    text = "layer It(n = 4)(x [n, n]) -> [n, n] {\n  w: param [n, n] ~ HOW\n  return x * .w\n}\n"
    for how, fill in fills.items():
        assert f"        nn.init.{fill}\n" in torch_source(load(text.replace("HOW", how)))


def test_a_second_name_for_a_hyperparameter_is_not_written() -> None:
    source = torch_source(archspec.load("bert-base-uncased"))
    assert "width = hidden" not in source
    assert "Embedding(vocab, hidden)" in source


@pytest.mark.parametrize(
    "name", ["small-decoder", *[pytest.param(name, marks=pytest.mark.slow) for name in ("everything", "t5-small")]]
)
def test_where_lines_end_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However narrow lines are, a file is the same program: operations keep their parentheses."""
    model = archspec.load(GOLDEN.get(name, name))
    programs: set[str] = set()
    for width in (20, 40, 64, 88):
        monkeypatch.setattr(layout, "WIDTH", width)
        programs.add(without_documentation(torch_source(model)))
    assert len(programs) == 1


def without_documentation(source: str) -> str:
    whole = ast.parse(source)
    for node in ast.walk(whole):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.Module) and ast.get_docstring(node) is not None:
            node.body.pop(0)
    return ast.unparse(whole)


@pytest.mark.parametrize("besides", ["", ", p", ", s", ", s > 0", ", matmul(p, q)"])
def test_no_product_of_attention_is_made_twice(besides: str) -> None:
    """Attention is one call unless its scores or probabilities are needed besides."""
    outputs = "([batch, 2, n, 4], [...])" if besides else "[batch, 2, n, 4]"
    outputs = outputs.replace("[...]", {"s > 0": "bool [batch, 2, n, n]"}.get(besides[2:], "[batch, 2, n, n]"))
    outputs = outputs.replace("n, n]", "n, 4]") if "matmul" in besides else outputs
    text = f"""
dim batch, n
block Net()(q [batch, 2, n, 4]) -> {outputs} {{
  s = matmul(q, transpose(q)) / 2.0
  p = softmax(s)
  return matmul(p, q){besides}
}}
"""
    source = torch_source(load(text))
    assert source.count("scaled_dot_product_attention") == (not besides)
    assert source.count("torch.matmul") == (0 if not besides else 3 if "matmul" in besides else 2)


@pytest.mark.parametrize(
    ("table", "is_view"),
    [
        ("expand([2, 2])(arange(2))", True),
        ("transpose(reshape([2, 2])(arange(4)))", True),
        ("reshape([2, 2])(slice(axis = 0, stop = 4)(arange(9)))", True),
        ("reshape([2, 2])(arange(4))", False),
        ("expand([2, 2])(arange(2)) + 0", False),
    ],
)
def test_a_table_has_memory_of_its_own(table: str, is_view: bool) -> None:
    text = f"layer Net()(x [2, 2]) -> [2, 2] {{\n  ids: buffer int [2, 2] = {table}\n  return x + real(.ids)\n}}\n"
    assert ("clone(memory_format=torch.contiguous_format)" in torch_source(load(text))) == is_view


@pytest.mark.parametrize(
    ("head", "weight", "is_known"),
    [("y = x", ".weight", True), ("y = x", "(.weight + 1.0)", False), ("y = tanh(x)", ".weight", False)],
)
def test_only_what_computes_the_same_is_the_norm_of_pytorch(head: str, weight: str, is_known: bool) -> None:
    norm = f"y / sqrt(sum(axis = -1, keep = true)(y * y) / n + 1e-6) * {weight}"
    text = f"""
dim batch
layer Norm(n)(x [batch, n]) -> [batch, n] {{
  weight: param [n]
  {head}
  return {norm}
}}
block Net()(x [batch, 4]) -> [batch, 4] {{
  return x |> norm: Norm(4)
}}
"""
    assert ("nn.RMSNorm" in torch_source(load(text))) == is_known


TABLES = [
    "[n] = min(line, 3.0)",
    "[n] = max(line, 3.0)",
    "int [n] = min(arange(n), 3)",
    "[n] = max(min(line, 3.0), 1.0)",
    "[n] = min(3.0, line)",
    "[n] = min(line, real(n))",
    "bool [n] = arange(n) == 2",
    "bool [n] = arange(n) != 2",
    "bool [n] = 2 != arange(n)",
    "bool [n, n] = arange(n) != reshape([n,1])(arange(n))",
    "bool [n, n] = arange(n) == reshape([n,1])(arange(n))",
    "bool [n] = flags != true",
    "bool [n] = flags == false",
    "bool [n] = flags != flags",
    "bool [n] = n < arange(n)",
    "bool [n] = k <= arange(n)",
    "bool [n] = not flags",
    "bool [n] = flags and flags",
    "bool [n] = flags or arange(n) >= k",
    "int [n] = arange(n) % 3",
    "int [n] = arange(n) // 3",
    "int [n] = 7 % (arange(n) + 1)",
    "int [n] = 7 // (arange(n) + 1)",
    "[n] = 2.0 ** line",
    "[n] = line ** 2",
    "[n] = 3 / (line + 1.0)",
    "[n] = 3 - line",
    "int [n] = -arange(n)",
    "[n] = arange(n) / 2",
    "int [n] = floor(line)",
    "int [n] = int(line)",
    "[n] = abs(line)",
    "[n] = tanh(line) + sigmoid(line) + erf(line) + log(line + 1.0) + sqrt(line)",
    "[n] = where(flags, line, 0.0)",
    "[n] = where(flags, 1.0, line)",
    "[n] = where(flags, 1.0, 2.0)",
    "int [n] = where(flags, 1, 0)",
    "[n] = where(flags, -inf, 0.0)",
    "[] = sum(axis = 0)(line)",
    "[n] = sum(axis = 1)(column * line)",
    "[n, 1] = sum(axis = -1, keep = true)(column * line)",
    "[n] = amax(axis = 0)(column * line)",
    "int [n] = argmax(axis = 0)(column * line)",
    "[1, n] = amax(axis = 0, keep = true)(column * line)",
    "[n] = softmax(line)",
    "[n] = cumsum(axis = 0)(line)",
    "int [n] = cumsum(axis = 0)(arange(n))",
    "[n, n] = matmul(column, reshape([1, n])(line))",
    "[n, 2] = stack(axis = 1)(line, line)",
    "[2 * n] = concat(axis = 0)(line, line)",
    "[2] = slice(axis = 0, start = 1, stop = 3)(line)",
    "[2] = slice(axis = 0, start = 0, stop = 4, step = 2)(line)",
    "[] = pick(axis = 0, index = 1)(line)",
    "[n] = pick(axis = 1, index = -1)(column * line)",
    "[n] = pick(axis = -2, index = 1)(column * line)",
    "[2, n] = slice(axis = -2, start = 2)(column * line)",
    "[n + 3] = pad(axis = 0, before = 1, after = 2)(line)",
    "[n + 3] = pad(axis = 0, before = 1, after = 2, value = 7.0)(line)",
    "[n + 1, n] = pad(axis = 0, before = 0, after = 1)(column * line)",
    "int [n + 1] = pad(axis = 0, before = 0, after = 1)(arange(n))",
    "[n] = roll(axis = 0, shift = 1)(line)",
    "[n, n] = expand([n, n])(line)",
    "[n, n] = transpose(column * line)",
    "[n, n] = permute([1, 0])(column * line)",
    "[n] = full([n], 2.5)",
    "int [n] = full([n], k)",
    "bool [n] = full([n], true)",
    "[2] = [0.5, 1.5]",
    "int [2] = [1, k]",
    "[2, 2] = [[1.0, 2.0], [3.0, 4.0]]",
    "[n] = gather(axis = 0)(line, arange(n))",
    "[n, n] = real(one_hot(n)(arange(n)))",
    "[n, n] = embedding(arange(n), column * line)",
    "[n] = max(line, lowest)",
    "[n] = float32(line)",
    "[n] = relu(line)",
    "[n] = gelu(line)",
    "[n] = layer_norm(1e-5)(line)",
    "[n] = dropout(0.5)(line)",
    "int [n] = counted(n)()",
]
COUNTED = """
fn counted(n)() -> int [n] {
  total = reshape([])(arange(1))
  for i in 0..n {
    total = total + i
    y = collect(axis = 0)(total)
  }
  return y
}
"""
PARTS = {"line": "(arange(n) * 1.0)", "column": "reshape([n, 1])(arange(n) * 1.0)", "flags": "(arange(n) > 1)"}


def test_tables_made_by_each_operation(golden: Callable[[str, str], None]) -> None:
    """Each is made as the spec says where PyTorch is not installed, too, or it would be refused."""
    texts = [re.sub("|".join(PARTS), lambda found: PARTS[found[0]], table) for table in TABLES]
    declared = "\n".join([f"  t{i}: unused buffer {text}" for i, text in enumerate(texts)])
    net = f"layer Net(n = 4, k = 3)(x [n]) -> [n] {{\n{declared}\n  return x * k\n}}\n"
    source = torch_source(load(f"import std {{ relu, gelu }}\n{COUNTED}{net}"))
    golden("torch/tables.txt", source[source.index("def counted") : source.index("    def forward")])


def test_functions_of_numbers_are_functions_of_python() -> None:
    text = """
fn capped(n, most = 4) {
  if n > most {
    m = most
  } else {
    m = n
  }
  return m if m > 0 else 0
}
layer Scaled(n)(x [8]) -> [8] { return x * real(capped(n)) }
block Net()(x [8]) -> [8] { return x |> a: Scaled(3) |> b: Scaled(6) }
"""
    tree = ast.parse(torch_source(load(text)))
    (function,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "capped"]
    found: dict[str, Any] = {"Any": Any}
    exec(ast.unparse(function), found)
    assert [found["capped"](n) for n in (-1, 3, 4, 6)] == [0, 3, 4, 4]


def test_operands_of_numbers_are_where_their_names_say() -> None:
    text = """
fn f(k) { return max(b = k, a = 2) + mod(b = 3, a = k) + exp(x = k) }
layer It(n = 4, m = f(n), j = floordiv(b = 2, a = n))(x [n]) -> [n] {
  h = floordiv(b = 2, a = 3 * n)
  w: param [h]
  return x * m * j * pow(b = 2, a = n) + sum(axis = 0)(.w) * mod(n, b = 3)
}
"""
    source = torch_source(load(text))
    assert "return max(2, k) + k % 3 + math.exp(k)" in source
    assert "j = n // 2" in source
    assert "h = 3 * n // 2" in source
    assert "return x * self.m * self.j * self.n**2 + self.w.sum(0) * (self.n % 3)" in source


def test_every_class_says_what_it_is() -> None:
    tree = ast.parse(torch_source(archspec.load("bert-base-uncased")))
    nodes = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    told = {node.name: ast.get_docstring(node) for node in nodes}
    assert told.pop("BertOutput") is None
    assert all(told.values())
    assert list(told)[-1] == "build"


def test_a_file_is_not_overwritten_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bert.py"
    assert main(["build", "bert-base-uncased", "-o", str(path)]) == 0
    written = path.read_text(encoding="utf-8")
    assert written == torch_source(archspec.load("bert-base-uncased"))
    assert main(["build", "albert-base-v2", "-o", str(path)]) == 2
    assert path.read_text(encoding="utf-8") == written
    assert "--force" in capsys.readouterr().err
    assert main(["build", "albert-base-v2", "-o", str(path), "--force"]) == 0
    assert path.read_text(encoding="utf-8") == torch_source(archspec.load("albert-base-v2"))
    assert [p.name for p in tmp_path.iterdir()] == ["bert.py"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_without_a_reader_is_an_error(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "archspec", "build", "gpt2", "--force", "-o", str(pipe)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "cannot write" in done.stderr
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    subprocess.run(command, timeout=60, check=True)
    assert os.read(reader, 2**20).decode() == torch_source(archspec.load("gpt2"))
    os.close(reader)


def test_names_that_files_use_themselves_are_not_taken_by_inputs() -> None:
    names = [
        *("ByExpert", "Callable", "F", "NamedTuple", "Tensor", "abs", "bool", "build", "device", "dtype", "enumerate"),
        *("expert_linear", "fft", "float", "group_sizes", "int", "len", "list", "math", "max", "min", "nn", "own"),
        *("part_at", "partial", "range", "self", "str", "super", "topk", "torch", "training", "tuple"),
    ]
    words = ", ".join([f"{name} [n]" for name in names])
    lines = torch_source(load(f"block Net(n = 4)({words}) -> [n] {{ return {' + '.join(names)} }}")).splitlines()
    start = lines.index("        self,") + 1
    assert lines[start : start + len(names)] == [f"        {name}_: Tensor," for name in names]


def test_a_hyperparameter_that_is_never_used_is_left_out() -> None:
    text = "block Net(n = 2, spare = 3)(x [n]) -> [n] {\n  w: param [n]\n  return x * .w\n}\n"
    assert "spare" not in torch_source(load(text)).partition('"""\n')[2]


BOTH = "this is a tensor in one case and a number in another"
TWICE = """layer One(k)(x [2, 4, 4]) -> [2, 4, 4] {{
  w: param [4]
  return «{step}»
}}
block Net(n = 4)(x [2, 4, 4]) -> [2, 4, 4] {{
  return x |> a: One({first}) |> b: One({second})
}}
"""
EACH = """layer One(n, ks)(x [2, 4, 4]) -> [2, 4, 4] {{
  w: param [4]
  y = x * .w
  for k in 0..2 {{
    y = {step}
  }}
  return y
}}
block Net(n = 4)(x [2, 4, 4]) -> [2, 4, 4] {{
  return x |> a: One(n, {values})
}}
"""
REFUSED = {
    "a conditional": (
        "layer Net(n = 4)(x [n], y [n] = none) -> [n] {\n  w: param [n]\n"
        "  return x * .w * «(y if y != none else 2.0)»\n}",
        BOTH,
    ),
    "branches": (
        "layer Net(n = 4)(x [n], y [n] = none) -> [n] {\n  w: param [n]\n"
        "  «if y != none { h = y } else { h = 2.0 }»\n  return x * .w * h\n}",
        BOTH,
    ),
    "a convolution over four axes": (
        "layer Net(n = 2)(x [1, n, 4, 4, 4, 4]) -> [1, n, 4, 4, 4, 4] {\n"
        "  w: param [n, n, 1, 1, 1, 1]\n  return «conv(x, .w)»\n}",
        "PyTorch supports convolutions over one, two or three axes",
    ),
    "the name that modules keep": (
        f"{DENSE}block Net(n = 2)(x [n]) -> [n] {{\n  return x |> «training»: Dense(n)\n}}",
        "PyTorch's modules keep the name `training` for themselves",
    ),
    "a stream that changes its type": (
        "block Net(n = 3)(x int [4]) -> [4] {\n  return x «|> * 0.5 for i in 0..n»\n}",
        "the piped value changes its type from one iteration to the next",
    ),
    "a name that changes its type": (
        "block Net(n = 3)(x int [4]) -> [4] {\n  y = x\n  «for i in 0..n» { y = y * 0.5 }\n  return y\n}",
        "`y` changes its type from one iteration to the next",
    ),
    "a pool over four axes": (
        "layer Net(n = 2)(x [1, n, 4, 4, 4, 4]) -> [1, n, 4, 4, 4, 4] {\n"
        "  w: param [n, 1, 1, 1, 1]\n  return «max_pool(kernel = 1)(x * .w)»\n}",
        "PyTorch supports pooling over one, two or three axes",
    ),
    "padding along several axes": (
        TWICE.format(step="pad(axis = k, before = 0, after = 0)(x * .w)", first=1, second=2),
        "cannot pad along an axis that differs between uses",
    ),
    "padding of an axis that is another one from the end": (
        "fn longer(x [...]) -> [...] {\n  y = «pad(axis = 0, after = 1)(x)»\n"
        "  return slice(axis = 0, start = 0, stop = -1)(y)\n}\n"
        "block Net(n = 4)(x [n], y [n, n]) -> [n, n] {\n  w: param [n]\n  return longer(x * .w) + longer(y)\n}",
        "cannot pad along an axis that differs between uses",
    ),
    "a slice along several axes": (
        TWICE.format(step="slice(axis = k, start = 0)(x * .w)", first=1, second=2),
        "cannot slice along an axis that differs between uses",
    ),
    "a convolution that is transposed in one use": (
        EACH.format(
            step="«conv(transposed = ks[k])(y, reshape([4, 4, 1])(matmul(reshape([4, 1])(.w), reshape([1, 4])(.w))))»",
            values="[true, false]",
        ),
        "cannot translate a convolution that is transposed only in some uses",
    ),
    "a function that is given a number by its name": (
        "fn double(n) { return 2 * n }\nfn applied(f, k) { return «f(n = k)» }\n"
        "block Net(n = 4)(x [n]) -> [n] {\n  w: param [n]\n  return x * (.w * applied(double, n))\n}",
        "this call has no form in PyTorch",
    ),
    "a parameter, a buffer or nothing": (
        "layer Kinds(n, k)(x [n]) -> [n] {\n  «w»: param [n] if k == 0\n  w: buffer [n] if k == 1\n"
        "  return x * .w if k < 2 else x\n}\n"
        "block Net(n = 4)(x [n]) -> [n] {\n  return x |> a[i]: Kinds(n, i) for i in 0..3\n}",
        "this is a parameter in one use, a buffer in another, and absent in a third",
    ),
    "another function in other uses": (
        "fn double(n) { return 2 * n }\nfn triple(n) { return 3 * n + 1 }\n"
        + EACH.format(step="y * «ks[k](2)»", values="[double, triple]"),
        "what is called here is another function in other uses",
    ),
    "a default that `none` does not stand for": (
        "fn «wide»(n, m = 2 * n) { return m + 1 if m != none else n }\n"
        "block Net(n = 4)(x [n]) -> [n] {\n  w: param [n]\n  return x * .w * wide(n, none)\n}",
        "the default of `m` has no form in PyTorch",
    ),
    "an operation on numbers that is passed": (
        "fn applied(f, k) { return f(k) }\n"
        "block Net(n = 4)(x [n]) -> [n] {\n  w: param [n]\n  return x * .w * applied(«sqrt», 2.0 * n)\n}",
        "the operation `sqrt` cannot be passed as a value in PyTorch",
    ),
    "a table in a list": (
        "block Net(n = 4)(x [n]) -> [n] {\n  «t[i]»: const [n] = arange(n) * 1.0 + i for i in 0..2\n"
        "  return x * .t[0] + .t[1]\n}",
        "a `const` at an address with a number has no form in PyTorch; declare it as a `buffer`",
    ),
    "values of other types": (
        EACH.format(step="y + real(«full([4], ks[k])»)", values="[1, 2.0]"),
        "this is filled with another kind of value in other uses",
    ),
    "a tensor of other types": (
        "layer Part(n, k)(x [n]) -> [n] {\n  w: param [n] if k > 0\n  w: buffer int [n] = arange(n) if k == 0\n"
        "  return x * «.w»\n}\n"
        "block Net(n = 4)(x [n]) -> [n] {\n  return x |> a: Part(n, 3) |> b: Part(n, 0)\n}",
        "this tensor is not of one type in every use",
    ),
    "an address in other layers": (
        "layer W(n)(x [n]) -> [n] {\n  w: param [n]\n  return x * .w\n}\n"
        "layer V(n)(x [n]) -> [n] {\n  w: param [n]\n  return x + .w\n}\n"
        "block Net(n = 4, parts = [W, V])(x [n]) -> [n] {\n  h = x\n"
        "  for i in 0..2 {\n    y = h |> a[i]: parts[i](n)\n    h = y * .«a[i].w»\n  }\n  return h\n}",
        "what is declared on the way to this address is not the same in every use",
    ),
    "seven optional inputs": (
        "block Net(n = 4)(x [n], a [n] = none, b [n] = none, c [n] = none, d [n] = none, e [n] = none,\n"
        "  f [n] = none, «g [n] = none») -> [n] {\n"
        "  return x + (a if a != none else b if b != none else c if c != none else d if d != none else x)"
        " + (e if e != none else f if f != none else g if g != none else x)\n}",
        "at most 6 inputs of a model may be optional in PyTorch",
    ),
}


def test_six_inputs_may_be_optional() -> None:
    text, _ = REFUSED["seven optional inputs"]
    text = text.replace(", «g [n] = none»", "").replace(" else g if g != none", "")
    assert text.count("] = none") == 6
    assert "f: Tensor | None = None,\n    ) -> Tensor:" in torch_source(load(text))


@pytest.mark.parametrize("condition", [".w != none", "not (none == .w)"])
def test_whether_a_tensor_is_declared_is_known(condition: str) -> None:
    text = f"""
layer Part(n, k)(x [n]) -> [n] {{
  w: param [n] if k > 0
  return (x * .w if {condition} else x) if k > 0 else x * 2.0
}}
block Net(n = 4)(x [n]) -> [n] {{
  return x |> a: Part(n, 3)
}}
"""
    assert "return x * self.w\n" in torch_source(load(text))


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_form_in_pytorch_is_refused_at_its_place(case: str) -> None:
    text, message = REFUSED[case]
    start, end = text.index("«"), text.index("»") - 1
    with pytest.raises(archspec.ArchError) as caught:
        torch_source(load(text.replace("«", "").replace("»", "")))
    (found,) = caught.value.diagnostics
    assert found.span is not None
    assert (found.code, found.message, found.span.start, found.span.end) == ("untranslatable", message, start, end)


def test_what_cannot_be_translated_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, path = tmp_path / "spec.arch", tmp_path / "spec.py"
    spec.write_text(
        "layer Net(n = 2)(x [1, n, 4, 4, 4, 4]) -> [1, n, 4, 4, 4, 4] {\n"
        '  w: param [n, n, 1, 1, 1, 1]\n  return conv(x, .w)\n}\nmodel "it" = Net()\n',
        encoding="utf-8",
    )
    assert main(["build", str(spec), "-o", str(path)]) == 1
    said = capsys.readouterr().err
    assert "error[untranslatable]" in said and f"{spec}:3:10" in said
    assert not path.exists()


def test_a_tensor_that_is_left_out_is_none() -> None:
    text = """
block Net(n = 4, scaled = false)(x [batch, n]) -> [batch, n] {
  inner.scale: param [n] if scaled
  inner.weight: param [n]
  scale = .inner.scale
  h = x * .inner.weight
  return h * scale if scale != none else h
}
"""
    assert "        return x * self.inner.weight\n" in torch_source(load(f"dim batch\n{text}"))
    assert "        return h * scale\n" in torch_source(load(f"dim batch\n{text}", scaled=True))


def test_a_model_whose_only_output_is_left_out_gives_none() -> None:
    text = "block Net(k = 0)(x [4]) -> [4]? { return x * 3.0 if k > 0 }"
    assert "def forward(self, x: Tensor) -> None:\n        if" in torch_source(load(text))
    assert torch_source(load(text)).count("return None\n") == 1
    assert "-> Tensor:" in torch_source(load(text, k=1))


def test_inputs_after_an_absent_one_are_passed_by_name() -> None:
    spec = f"""{DENSE}
dim batch
block Part(n)(x [batch, n], gate [batch, n] = none, rest [batch, n] = none) -> [batch, n] {{
  y = x * gate if gate != none else x
  z = y + rest if rest != none else y
  return z |> a: Dense(n, n)
}}
block Net(n = 4)(x [batch, n], y [batch, n]) -> [batch, n] {{
  z = p: Part(n)(x, none, y) + q: Part(n)(y, x, y)
  return z + r: Part(n)(y, x)
}}
model "net" = Net()
"""
    text = torch_source(load(spec))
    assert "self.p(x, rest=y) + self.q(y, x, y)" in text
    assert "self.r(y, x)" in text


def test_convolutions_and_norms_of_groups_are_functions_of_pytorch() -> None:
    text = """
dim batch, seq
layer Net(n = 4)(x [batch, n, seq]) -> [batch, n, seq] {
  weight: param [n, n, 1]
  scale: param [n]
  shift: param [n]
  return conv(x, .weight) |> group_norm(2, 1e-5)(_, .scale, .shift)
}
"""
    source = torch_source(load(text))
    assert "F.conv1d(x, self.weight)" in source
    assert "F.group_norm(" in source and "2, self.scale, self.shift, 1e-5" in " ".join(source.split())


def test_a_bias_that_is_always_there_stays_with_one_that_may_be_given() -> None:
    text = """
dim batch, n
block Net()(q [batch, 2, n, 4], near [n, n], far [n, n] = none) -> [batch, 2, n, 4] {
  s = matmul(q, transpose(q)) / 2.0 + near
  t = s + far if far != none else s
  return matmul(softmax(t), q)
}
"""
    statements = "bias = near if far is not None: bias = bias + far return F.scaled_dot_product_attention("
    assert statements in " ".join(torch_source(load(text)).split())


@pytest.mark.parametrize("scores", ["s + far if far != none else s * 0.5", "s * far if far != none else s"])
def test_scores_that_differ_in_other_ways_are_written_out(scores: str) -> None:
    text = f"""
dim batch, n
block Net()(q [batch, 2, n, 4], far [n, n] = none) -> [batch, 2, n, 4] {{
  s = matmul(q, transpose(q)) / 2.0
  t = {scores}
  return matmul(softmax(t), q)
}}
"""
    assert "scaled_dot_product_attention" not in torch_source(load(text))


def test_a_loop_in_one_case_is_a_branch() -> None:
    text = """
dim batch
layer Net(n = 4)(x [batch, n], y [batch, n] = none) -> [batch, n] {
  w: param [n]
  h = (exp(x * .w) |> * 2.0 for i in 0..3) if y != none else x
  return h + x * .w
}
"""
    source = " ".join(torch_source(load(text)).split())
    assert "h = h * 2.0 chosen = h else: chosen = x" in source


def test_a_stream_that_a_loop_widens_has_its_type_again_after_each_turn() -> None:
    text = """
dim batch
layer Net(n = 4)(x [batch, n]) -> [batch, n] {
  w: param [n]
  for i in 0..2 {
    x = float32(x) * 2.0 + 1.0
  }
  return exp(x) * .w
}
"""
    source = " ".join(torch_source(load(text)).split())
    widened = "x.to(torch.promote_types(model_dtype, torch.float32)) * 2.0 + 1.0"
    assert f"model_dtype = x.dtype for _ in range(2): x = {widened} x = x.to(model_dtype) return" in source


def test_axes_between_others_move_with_all_of_them() -> None:
    text = """
dim batch, seq
layer Net(n = 4)(x [batch, seq, 3, n]) -> [3, batch, seq, n] {
  w: param [n]
  return rearrange("... a b -> a ... b")(x) * .w
}
"""
    assert ".permute(2, 0, 1, 3)" in torch_source(load(text))


def test_no_name_that_modules_keep_is_free() -> None:
    nn = pytest.importorskip("torch").nn
    assert [name for name in RESERVED_MODULE_NAMES if not hasattr(nn.Module(), name)] == []


def test_conditions_may_forward_their_numbers() -> None:
    text = """
fn big(k, n) { return k > n }
fn both(..big) { return big(..) }
block Net(n = 4, k = 3)(x [n]) -> [n] {
  w: param [n]
  return x * (.w if both(k, n) else .w + 1.0)
}
"""
    assert "return x * (self.w + 1.0)\n" in torch_source(load(text))
    assert "return x * self.w\n" in torch_source(load(text, k=5))


# Modules of PyTorch --------------------------------------------------------------------------------------------------

W, B = "weight: param [n, n]", "bias: param [n]"
RMS = "x / sqrt(sum(axis = -1, keep = true)(x * x) / n + {eps}) * .weight"
CHANNELS, LAST = "[batch, n, 5]", "[batch, 5, n]"
V, M, U = "weight: param [n]", "running_mean: buffer [n]", "running_var: buffer [n]"
COUNT = "num_batches_tracked: unused buffer int []"
STATISTICS = (
    "transpose(1, -1)(x) |> - .running_mean |> / sqrt(.running_var + 1e-3) |> * .weight |> + .bias |> transpose(1, -1)"
)
LAYERS = {
    "a product": ("n", [W, B], "linear(x, .weight, .bias)", ["4"], LAST),
    "without a bias": ("n", [W], "linear(x, .weight)", ["4"], LAST),
    "a bias in some uses": ("n, b", [W, B + " if b"], "linear(x, .weight, .bias)", ["4, true", "4, false"], LAST),
    "a bias that is settled": ("n, b", [W, B + " if b"], "linear(x, .weight, .bias)", ["4, false"], LAST),
    "initialized weights": (
        "n",
        [W + " ~ normal(0.02)", B + " ~ constant(0.0)"],
        "linear(x, .weight, .bias)",
        ["4"],
        LAST,
    ),
    "frozen weights": ("n", ["weight: frozen param [n, n]", B], "linear(x, .weight, .bias)", ["4"], LAST),
    "a bias that is added": ("n", [W, B], "linear(x, .weight) + .bias", ["4"], LAST),
    "a bias of another name": ("n", [W, "shift: param [n]"], "linear(x, .weight, .shift)", ["4"], LAST),
    "a third tensor": ("n", [W, B, "more: unused param [n]"], "linear(x, .weight, .bias)", ["4"], LAST),
    "another product in one use": (
        "n, k",
        [W],
        "linear(x, .weight) if k > 0 else linear(linear(x, .weight), .weight)",
        ["4, 1", "4, 0"],
        LAST,
    ),
    "twice the product": ("n", [W], "linear(x, .weight) * 2.0", ["4"], LAST),
    "a name for the product": ("n", [W, B], "y = linear(x, .weight, .bias)", ["4"], LAST),
    "a norm": ("n, eps = 1e-5", [V, B], "layer_norm(eps)(x, .weight, .bias)", ["4"], LAST),
    "a norm without a bias": ("n", [V], "layer_norm(1e-6)(x, .weight)", ["4"], LAST),
    "a norm with other weights": (
        "n",
        ["weight: param [n] ~ constant(1.0)", B + " ~ constant(0.5)"],
        "layer_norm(1e-6)(x, .weight, .bias)",
        ["4"],
        LAST,
    ),
    "a norm over two axes": ("n", ["weight: param [5, n]"], "layer_norm(1e-6)(x, .weight)", ["4"], LAST),
    "a norm with exchanged tensors": ("n", [V, B], "layer_norm(1e-6)(x, .bias, .weight)", ["4"], LAST),
    "a norm with a name": ("n", [V], "y = layer_norm(1e-6)(x, .weight)", ["4"], LAST),
    "eps in other uses": ("n, eps", [V], "layer_norm(eps)(x, .weight)", ["4, 1e-5", "4, 1e-6"], LAST),
    "root mean squares": ("n", ["weight: param [n] ~ constant(1.0)"], RMS.format(eps="1e-6"), ["4"], LAST),
    "root mean squares, eps in other uses": ("n, eps", [V], RMS.format(eps="eps"), ["4, 1e-5", "4, 1e-6"], LAST),
    "root mean squares, eps of others": ("n, e", [V], RMS.format(eps="e * 0.1"), ["4, 1e-5", "4, 1e-6"], LAST),
    "root mean squares of two names": (
        "n, a, b",
        [V],
        RMS.format(eps="(a if b == a else b)"),
        ["4, 1e-5, 1e-5", "4, 1e-6, 1e-6"],
        LAST,
    ),
    "root mean squares in float32": (
        "n",
        [V],
        "(float32(x) / sqrt(sum(axis = -1, keep = true)(float32(x) * float32(x)) / n + 1e-6)) * .weight",
        ["4"],
        LAST,
    ),
    "root mean squares with a matrix": ("n", ["weight: param [5, n]"], RMS.format(eps="1e-6"), ["4"], LAST),
    "root mean squares of another axis": (
        "n",
        [V],
        "x / sqrt(sum(axis = -2, keep = true)(x * x) / n + 1e-6) * .weight",
        ["4"],
        LAST,
    ),
    "squares of another size": (
        "n",
        [V],
        "x / sqrt(sum(axis = -1, keep = true)(x * x) / 5 + 1e-6) * .weight",
        ["4"],
        LAST,
    ),
    "sums": ("n", [V], "x / sqrt(sum(axis = -1, keep = true)(x * x) + 1e-6) * .weight", ["4"], LAST),
    "a convolution": ("n", ["weight: param [n, n, 3]", B], "conv(padding = 1)(x, .weight, .bias)", ["4"], CHANNELS),
    "a convolution with strides": (
        "n, s = 1",
        ["weight: param [n, n, 1]"],
        "conv(stride = s)(x, .weight)",
        ["4"],
        CHANNELS,
    ),
    "groups": (
        "n, g",
        ["weight: param [n, n // g, 1]", B],
        "conv(groups = g)(x, .weight, .bias)",
        ["4, 2", "4, 1"],
        CHANNELS,
    ),
    "groups of one": (
        "n",
        ["weight: param [n, 1, 3]", B],
        "conv(padding = 1, groups = n)(x, .weight, .bias)",
        ["4"],
        CHANNELS,
    ),
    "a transposed convolution": (
        "n",
        ["weight: param [n, n, 1]", B],
        "conv(transposed = true)(x, .weight, .bias)",
        ["4"],
        CHANNELS,
    ),
    "groups of a transposed convolution": (
        "n",
        ["weight: param [n, n // 2, 1]", B],
        "conv(transposed = true, groups = 2)(x, .weight, .bias)",
        ["4"],
        CHANNELS,
    ),
    "a convolution over two axes": (
        "n",
        ["weight: param [n, n, 1, 3]", B],
        "conv(padding = [0, 1])(x, .weight, .bias)",
        ["4"],
        "[batch, n, 5, 6]",
    ),
    "a square kernel": (
        "n",
        ["weight: param [n, n, 3, 3]", B],
        "conv(padding = 1, stride = [1, 1])(x, .weight, .bias)",
        ["4"],
        "[batch, n, 5, 6]",
    ),
    "a convolution over three axes": (
        "n",
        ["weight: param [n, n, 1, 1, 1]"],
        "conv(x, .weight)",
        ["4"],
        "[batch, n, 5, 6, 7]",
    ),
    "norms of groups": ("n, g", [V, B], "group_norm(g, 1e-5)(x, .weight, .bias)", ["4, 2"], CHANNELS),
    "norms of groups without a bias": ("n", [V], "group_norm(2, 1e-5)(x, .weight)", ["4"], CHANNELS),
    "statistics": ("n", [V, B, M, "running_var: buffer [n] ~ constant(1.0)", COUNT], STATISTICS, ["4"], CHANNELS),
    "statistics of the first axes": ("n", [V, B, M, U, COUNT], STATISTICS, ["4"], "[batch, n]"),
    "statistics of four axes": ("n", [V, B, M, U, COUNT], STATISTICS, ["4"], "[batch, n, 1, 1, 1, 1]"),
    "statistics without a count": (
        "n",
        [V, B, M, U, "num_batches_tracked: unused buffer []"],
        STATISTICS,
        ["4"],
        CHANNELS,
    ),
    "statistics that are trained": ("n", [V, B, "running_mean: param [n]", U, COUNT], STATISTICS, ["4"], CHANNELS),
    "statistics that are subtracted last": (
        "n",
        [V, B, M, U, COUNT],
        STATISTICS.replace(" - .running_mean |>", "").replace("|> *", "|> - .running_mean |> *"),
        ["4"],
        CHANNELS,
    ),
}


def test_layers_that_are_modules_of_pytorch(golden: Callable[[str, str], None]) -> None:
    """A layer with the tensors of one, which computes the same in every use, is derived from it."""
    texts: list[str] = []
    for case, (words, tensors, value, uses, shape) in LAYERS.items():
        name, _, named = value.partition(" = ")
        value = f"{value}\n  return {name}" if named and name.isidentifier() else f"return {value}"
        lines = [*tensors, value]
        head = f"dim batch\nlayer Part({words})(x {shape}) -> {shape} {{\n" + "".join([f"  {line}\n" for line in lines])
        applied = " |> ".join([f"{place}: Part({given})" for place, given in zip("ab", uses, strict=False)])
        net = shape.replace("n", "4")
        source = torch_source(load(f"{head}}}\nblock Net()(x {net}) -> {net} {{\n  return x |> {applied}\n}}\n"))
        found = source[source.index("class Part(") : source.index("\n\n\nclass Net")].partition("\n\n    def forward")[
            0
        ]
        texts.append(f"# {case}\n{found}\n")
    golden("torch/layers.txt", "".join(texts))


# Element types -------------------------------------------------------------------------------------------------------

APPLIED = """
fn halved(x [n]) -> [n] { return x * 0.5 }
fn added(x [n], y [n]) -> [n] { return x + y }
fn made(m)() -> [m] { return arange(m) * 0.5 }
fn counted(i int [n]) -> int [n] { return i * 2 }
fn drop(x [n]) -> [n] { return dropout(0.1)(x) }
"""
OF_INTEGERS = [
    ("int [n]", "i * 2"),
    ("int [n]", "i + k"),
    ("[n]", "i * 0.5"),
    ("[n]", "i / 2"),
    ("int [n]", "i // 2"),
    ("int [n]", "i % k"),
    ("int [n]", "-i"),
    ("[n]", "i ** 0.5"),
    ("int [n]", "i ** 2"),
    ("[n]", "real(i)"),
    ("[n]", "real(b)"),
    ("int [n]", "int(b)"),
    ("int [n]", "int(i * 0.5)"),
    ("[n]", "float32(i)"),
    ("[n]", "float32(b)"),
    ("[n]", "real(i) * real(b)"),
    ("[n]", "exp(real(i))"),
    ("[n]", "sin(i * 0.5)"),
    ("[n]", "sqrt(real(b))"),
    ("int [n]", "floor(i / 2)"),
    ("int [n]", "abs(i)"),
    ("[n]", "abs(i * 0.5)"),
    ("bool [n]", "i > 1"),
    ("bool [n]", "i > 0.5"),
    ("bool [n]", "i == 2"),
    ("bool [n]", "b != (i > 1)"),
    ("bool [n]", "not b"),
    ("bool [n]", "b and i >= k"),
    ("[n]", "where(b, 1.0, 0.0)"),
    ("int [n]", "where(b, i, 1)"),
    ("[n]", "where(b, real(i), 0.0)"),
    ("[n]", "where(b, 0.5, real(i))"),
    ("[n]", "where(b, -inf, real(i))"),
    ("int [n]", "max(i, 2)"),
    ("[n]", "max(i * 0.5, 2)"),
    ("[n]", "min(real(i), 0.5)"),
    ("int [n]", "min(i, arange(n))"),
    ("int [n]", "arange(n)"),
    ("[n]", "real(arange(n))"),
    ("[n]", "arange(n) * 0.5"),
    ("[n]", "sin(arange(n) * 0.5)"),
    ("[n]", "arange(n) * real(b)"),
    ("int [n]", "full([n], 2)"),
    ("[n]", "full([n], 0.5)"),
    ("bool [n]", "full([n], true)"),
    ("[n]", "full([n], k * 0.5)"),
    ("int [n]", "full([n], k)"),
    ("[n]", "full([n], 1.0) * i"),
    ("[2 * n]", "concat(axis = 0)(real(i), i * 0.5)"),
    ("int [2 * n]", "concat(axis = 0)(i, arange(n))"),
    ("[2, n]", "stack(axis = 0)(real(i), real(b))"),
    ("[1, 1]", "matmul(reshape([1, n])(real(i)), reshape([n, 1])(real(b)))"),
    ("[n]", "softmax(i * 0.5)"),
    ("[]", "sum(axis = 0)(i * 0.5)"),
    ("int []", "sum(axis = 0)(i)"),
    ("[n]", "cumsum(axis = 0)(real(b))"),
    ("[n]", "halved(real(i))"),
    ("[n]", "halved(i * 0.5)"),
    ("[n]", "made(n)()"),
    ("[n]", "made(n)() * i"),
    ("int [n]", "counted(i)"),
    ("[n]", "drop(real(i))"),
]
OF_REALS = [
    ("[n]", "x * i"),
    ("[n]", "x + real(b)"),
    ("[n]", "x + arange(n)"),
    ("[n]", "x * arange(n) * 0.5"),
    ("[n]", "x * sin(arange(n) * 0.5)"),
    ("[n]", "x + k"),
    ("[n]", "x * 0.5"),
    ("[n]", "x ** i"),
    ("[n]", "where(b, x, 0.0)"),
    ("[n]", "where(b, x, real(i))"),
    ("[n]", "where(b, real(i), x)"),
    ("[n]", "where(b, i * 0.5, x * 2.0)"),
    ("[n]", "max(x, real(i))"),
    ("[n]", "max(x, 0)"),
    ("[n]", "min(x, i * 0.5)"),
    ("bool [n]", "x > i"),
    ("bool [n]", "x == 0.5"),
    ("int [n]", "int(x)"),
    ("[n]", "float32(x)"),
    ("[n]", "float32(x) * x"),
    ("[n]", "float32(x) * i"),
    ("[n]", "float32(x) + 1.0"),
    ("[n]", "x * full([n], 0.5)"),
    ("[2 * n]", "concat(axis = 0)(x, real(i))"),
    ("[2, n]", "stack(axis = 0)(i * 0.5, x)"),
    ("[1, 1]", "matmul(reshape([1, n])(x), reshape([n, 1])(real(i)))"),
    ("[1, 1]", "matmul(reshape([1, n])(i * 0.5), reshape([n, 1])(x))"),
    ("[n]", "halved(x)"),
    ("[n]", "halved(x) * i"),
    ("[n]", "added(x, real(i))"),
    ("[n]", "added(i * 0.5, x)"),
    ("[n]", "drop(x)"),
]
"""Expressions, with the types of their values."""


def statements_of(inputs: str, expressions: Sequence[tuple[str, str]], declared: str = "") -> str:
    """The code of expressions of inputs, each of which is an output of one layer, and the types that these get."""
    lines = [f"  y{i} = {value}" for i, (_, value) in enumerate(expressions)]
    used = "\n".join(lines)
    functions = [line for line in APPLIED.splitlines() if line and re.search(rf"\b{line.split()[1][:4]}", used)]
    outputs = ", ".join([f"y{i} {type}" for i, (type, _) in enumerate(expressions)])
    head = "\n".join(["dim n", *functions, f"layer Net(k = 3)({inputs}) -> ({outputs}) {{"])
    names = ", ".join([f"y{i}" for i in range(len(lines))])
    source = torch_source(load(f"{head}\n{declared}{used}\n  return {names}\n}}\n"))
    return source[source.index("        y0 = ") : source.index("\n\n\ndef build")]


def test_the_types_of_values(golden: Callable[[str, str], None]) -> None:
    """What is made of integers alone takes the type of an input, else that of a weight, else the default."""
    cases = {
        "beside a real input": statements_of("x [n], i int [n], b bool [n]", [*OF_INTEGERS, *OF_REALS]),
        "beside a weight": statements_of("i int [n], b bool [n]", OF_INTEGERS, "  w: unused param [2]\n"),
        "alone": statements_of("i int [n], b bool [n]", OF_INTEGERS),
    }
    golden("torch/types.txt", "".join([f"# {case}\n{text}\n" for case, text in cases.items()]))


def test_numbers_are_tensors_where_pytorch_takes_no_others() -> None:
    text = """
dim batch
layer It(n = 4, half = 0.5, flag = true)(x [batch, n]) -> [batch, n] {
  pair: const [2] = stack(axis = 0)(n, half)
  return where(flag, x, 2.0) + expand([n])(half) + reshape([1])(n) + sum(axis = 0)(.pair) * dropout(0.5)(half)
}
"""
    source = torch_source(load(text))
    full = "torch.full((), {}, dtype={}, device=x.device)"
    wide = "torch.promote_types(x.dtype, torch.float32)"
    flat = " ".join(source.split()).replace("( ", "(").replace(", )", ")").replace(" )", ")")
    assert f"torch.where({full.format('True', 'torch.bool')}, x, 2.0)" in flat
    assert f"{full.format('self.n', 'torch.int64')}.reshape(1)" in flat
    assert f"{full.format('0.5', wide)}" in flat
    assert "torch.full((), n, dtype=torch.int64)" in flat and "torch.full((), 0.5, dtype=torch.float64)" in flat
