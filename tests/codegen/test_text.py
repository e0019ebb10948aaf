"""The Python files that models are translated to: their text, and what keeps a file from being written."""

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from zlib import crc32

import pytest
import torch_compare
import torch_texts
from building import build
from paths import DATA, ROOT
from small import DENSE

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
    golden(f"torch/{name}.txt", build(GOLDEN[name]))


@pytest.mark.parametrize("file", TRANSLATED)
def test_the_text_of_unusual_files(file: str, golden: Callable[[str, str], None]) -> None:
    path = DATA / "translated" / f"{file}.arch"
    bodies = [build(f"{path}:{model}") for model in TRANSLATED[file]]
    golden(f"torch/{file}.txt", "\n\n".join(body.partition("nn\n\n\n")[2] for body in bodies))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("file", [file for file in FILES if file not in ("everything", "further", "twice", "uses")])
def test_texts_stay_those_that_slow_tests_run(file: str, golden: Callable[[str, str], None]) -> None:
    """By their checksums: what differs is to be looked at, and run by the slow tests."""
    path = DATA / "translated" / f"{file}.arch"
    models = [name for name in torch_texts.MODEL.findall(path.read_text()) if name not in TRANSLATED.get(file, ())]
    golden(f"torch/sums/{file}.txt", sums({name: build(f"{path}:{name}") for name in models}))


@pytest.mark.slow
def test_what_was_once_wrong_stays_what_slow_tests_run(golden: Callable[[str, str], None]) -> None:
    sources: dict[str, str] = {}
    for path in sorted((DATA / "faults").glob("*.arch")):
        for name in torch_texts.MODEL.findall(path.read_text(encoding="utf-8")):
            sources[f"{path.stem}:{name}"] = build(f"{path}:{name}")
    golden("torch/sums/faults.txt", sums(sources))


def test_texts_drawn_at_random_stay_those_that_slow_tests_run(
    golden: Callable[[str, str], None], tmp_path: Path
) -> None:
    golden(
        "torch/sums/random.txt",
        sums({text.name: torch_compare.torch_source(text.load(tmp_path)) for text in torch_texts.random_texts()}),
    )


def sums(sources: Mapping[str, str]) -> str:
    return "".join([f"{crc32(source.encode()):08x} {name}\n" for name, source in sources.items()])


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
        (tmp_path / f"{name}.py").write_text(build(spec), encoding="utf-8")
    assert torch_compare.lint(tmp_path) == ""
    assert torch_compare.layout(tmp_path) == ""


@pytest.mark.slow
def test_ruff_finds_no_mistake_in_unusual_files(tmp_path: Path) -> None:
    """What the specs of the slow tests are translated to has no undefined or unused names."""
    for path in sorted([*(DATA / "translated").glob("*.arch"), *(DATA / "faults").glob("*.arch")]):
        for i, model in enumerate(torch_texts.MODEL.findall(path.read_text(encoding="utf-8"))):
            source = build(f"{path}:{model}")
            (tmp_path / f"{path.stem}{i}.py").write_text(source, encoding="utf-8")
    assert torch_compare.lint(tmp_path) == ""


def test_of_two_definitions_with_one_name_the_outer_file_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "part.arch").write_text(DENSE.replace("Dense", "Net"), encoding="utf-8")
    (tmp_path / "it.arch").write_text(
        'import "part.arch" { Net as Part }\nblock Net(n = 2)(x [n]) -> [n] {\n  return x |> a: Part(n)\n}\n'
        'model "it" = Net()\n',
        encoding="utf-8",
    )
    source = build(str(tmp_path / "it.arch"))
    assert "self.a = Net2(n)" in source and source.endswith("    return Net()\n")


def test_what_follows_from_defaults_is_left_to_the_class() -> None:
    """`ffn` is 4 times `hidden` unless it is given."""
    assert build("gpt2").endswith("    return GPT2LMHeadModel()\n")
    assert build("gpt2", ffn=3072).endswith("    return GPT2LMHeadModel(ffn=3072)\n")


def test_a_second_name_for_a_hyperparameter_is_not_written() -> None:
    source = build("bert-base-uncased")
    assert "width = hidden" not in source
    assert "Embedding(vocab, hidden)" in source


def test_every_class_says_what_it_is() -> None:
    tree = ast.parse(build("bert-base-uncased"))
    nodes = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    told = {node.name: ast.get_docstring(node) for node in nodes}
    assert told.pop("BertOutput") is None
    assert all(told.values())
    assert list(told)[-1] == "build"


def test_a_file_is_not_overwritten_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bert.py"
    assert main(["build", "bert-base-uncased", "-o", str(path)]) == 0
    written = path.read_text(encoding="utf-8")
    assert written == build("bert-base-uncased")
    assert main(["build", "albert-base-v2", "-o", str(path)]) == 2
    assert path.read_text(encoding="utf-8") == written
    assert "--force" in capsys.readouterr().err
    assert main(["build", "albert-base-v2", "-o", str(path), "--force"]) == 0
    assert path.read_text(encoding="utf-8") == build("albert-base-v2")
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
    assert os.read(reader, 2**20).decode() == build("gpt2")
    os.close(reader)


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
