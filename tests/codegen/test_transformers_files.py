"""Folders for `transformers`: their files, and what keeps a folder from being written."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch_compare
from building import build
from paths import DATA
from sections import read_sections
from small import load

import archspec
from archspec.testing import main

TINY = """
import std { Linear, Embedding, SelfAttention }
dim batch, seq
block Layer(width, heads)(x [batch, seq, width]) -> [batch, seq, width] {
  return SELF + x
}
block Tiny(vocab = 50, width = 8, heads = 2, layers = 2, top_k = width)
          (input_ids int [batch, seq]) -> (hidden [batch, seq, width], logits [batch, seq, vocab]) {
  role head for decoder
  h = words: Embedding(vocab, width)(input_ids)
    |> layers[i]: Layer(width, heads) for i in 0..layers
    |> wide:      Linear(width, top_k)
    |> narrow:    Linear(top_k, width)
  tie decoder.weight = words.weight
  return h, decoder: Linear(width, vocab)(h)
}
model "a tiny one" = Tiny()
""".replace("SELF", "attention: SelfAttention(width, heads)(x)")


def read_files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())}


def folder_files(model: archspec.Model) -> dict[str, str]:
    """The files of the folder that a model is written to."""
    with TemporaryDirectory() as folder:
        archspec.to_transformers(model, folder, force=True)
        return read_files(Path(folder))


def auto_class(model: archspec.Model) -> str | None:
    """The class of `transformers` that a model is for, if it is for more than hidden states."""
    names = json.loads(folder_files(model)["config.json"])["auto_map"]
    return next((name for name in names if name.startswith("AutoModelFor")), None)


def test_the_files_of_a_folder(golden: Callable[[str, str], None]) -> None:
    files = folder_files(load(TINY))
    assert files.pop("pytorch_a_tiny_one.py") == build(TINY)
    golden("transformers.txt", "".join(f"==> {name}\n{text}" for name, text in files.items()))


OTHERS = read_sections(DATA / "specs" / "transformers_others.arch")


def test_the_files_of_other_models(golden: Callable[[str, str], None]) -> None:
    texts: list[str] = []
    for case, spec in OTHERS.items():
        files = folder_files(load(spec))
        texts += [
            f"# {case}\n",
            *[f"==> {name}\n{'' if name.startswith('pytorch_') else text}" for name, text in files.items()],
        ]
    golden("transformers_others.txt", "".join(texts))


def test_files_are_written_as_people_write_them(tmp_path: Path) -> None:
    """ruff finds nothing in them, and would lay them out as they are."""
    labels = 'import bert { BertForTokenClassification }\nmodel "tokens" = BertForTokenClassification(labels = 5)\n'
    for model in (load(TINY), archspec.loads(labels), archspec.load("bart-base")):
        archspec.to_transformers(model, tmp_path / model.name)
    assert torch_compare.lint(tmp_path) == ""
    assert torch_compare.layout(tmp_path) == ""


@pytest.mark.parametrize(
    ("block", "auto"),
    [
        ("BertForMaskedLM", "AutoModelForMaskedLM"),
        ("BertForSequenceClassification", "AutoModelForSequenceClassification"),
        ("BertForTokenClassification", "AutoModelForTokenClassification"),
        ("BertForQuestionAnswering", "AutoModelForQuestionAnswering"),
        ("BertForMultipleChoice", None),
        ("BertForPreTraining", None),
        ("Bert", None),
    ],
)
def test_heads_are_recognized_by_their_outputs(block: str, auto: str | None) -> None:
    model = archspec.loads(f'import bert {{ {block} }}\nmodel "it" = {block}(layers = 1)\n')
    assert auto_class(model) == auto


HEADED = """
import std {{ Embedding, Linear, mean }}
dim batch, seq
block Net(n = 4, vocab = 5, kinds = 3)(input_ids {ids}{more}) -> ({outputs}) {{
  role head for last
  h = words: Embedding(vocab, n)({looked_up}) |> last: Linear(n, kinds)
  return {value}
}}
model "net" = Net()
"""
EACH, PAIR = "logits [batch, seq, kinds]", "start_logits [batch, seq], end_logits [batch, seq]"
FIRST, SECOND = (f"pick(axis = -1, index = {i})(h)" for i in range(2))
TWO = f"{FIRST}, {SECOND}"


@pytest.mark.parametrize(
    ("case", "auto"),
    [
        ({}, "AutoModelForTokenClassification"),
        ({"outputs": "scores [batch, seq, kinds]"}, None),
        ({"more": ", labels [kinds]", "value": "h + labels"}, None),
        ({"more": ", start_positions [kinds]", "value": "h + start_positions"}, "AutoModelForTokenClassification"),
        ({"outputs": f"{EACH}, loss [batch, kinds]", "value": "h, mean()(h)"}, None),
        ({"outputs": "logits [batch, kinds]", "value": "mean()(h)"}, "AutoModelForSequenceClassification"),
        ({"outputs": "logits [kinds, batch]", "value": "transpose(mean()(h))"}, None),
        ({"outputs": "logits [batch, seq, 1, kinds]", "value": "reshape([batch, seq, 1, kinds])(h)"}, None),
        ({"outputs": "logits [batch, kinds, seq]", "value": "transpose(h)"}, None),
        ({"outputs": PAIR, "value": TWO}, "AutoModelForQuestionAnswering"),
        ({"outputs": f"{PAIR}, logits [batch, kinds]", "value": f"{TWO}, mean()(h)"}, "AutoModelForQuestionAnswering"),
        ({"outputs": "start_logits [batch, seq]", "value": FIRST}, None),
        (
            {"outputs": "start_logits [batch, seq], end_logits [seq, batch]", "value": f"{FIRST}, transpose({SECOND})"},
            None,
        ),
        (
            {
                "outputs": "start_logits [seq, batch], end_logits [seq, batch]",
                "value": f"transpose({FIRST}), transpose({SECOND})",
            },
            None,
        ),
        ({"ids": "[batch, seq]", "looked_up": "int(input_ids)"}, None),
        ({"ids": "int [batch, seq, 1]", "looked_up": "reshape([batch, seq])(input_ids)"}, None),
    ],
)
def test_heads_have_the_shapes_that_their_class_takes(case: dict[str, str], auto: str | None) -> None:
    usual = {"ids": "int [batch, seq]", "more": "", "outputs": EACH, "looked_up": "input_ids", "value": "h"}
    assert auto_class(load(HEADED.format(**(usual | case)))) == auto
    if not case:
        assert auto_class(load(HEADED.format(**usual).replace("  role head for last\n", ""))) is None


def test_words_are_predicted_by_attention_to_all_tokens_or_to_earlier_ones() -> None:
    classes = {"roberta-base-mlm": "AutoModelForMaskedLM", "gpt2": "AutoModelForCausalLM", "t5-small": None}
    assert {name: auto_class(archspec.load(name, layers=1)) for name in classes} == classes
    alone = TINY.replace("attention: SelfAttention(width, heads)(x)", "x")  # tokens do not depend on others
    assert (
        auto_class(load(alone.replace("width, heads)(x", "width)(x").replace("width, heads) for", "width) for")))
        is None
    )


@pytest.mark.parametrize(("inputs", "generates"), [("", True), ("more [8] = none", True), ("more [8]", False)])
def test_models_that_need_more_than_tokens_do_not_generate(inputs: str, generates: bool) -> None:
    text = TINY.replace("heads)(x)", "heads, causal = true)(x)")
    if inputs:
        text = text.replace("[batch, seq]) ->", f"[batch, seq], {inputs}, last [8] = none) ->")
        more = "+ more if more != none" if "none" in inputs else "+ more"
        text = text.replace("(top_k, width)\n", f"(top_k, width)\n |> {more} |> + last if last != none\n")
    files = folder_files(load(text))
    assert ("GenerationMixin" in files["modeling_a_tiny_one.py"]) == generates


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("wide:", "base_model:", "`base_model` is an attribute of every model of transformers"),
        ("wide:", "train.wide:", "`train` is an attribute of every PyTorch module"),
        ("input_ids", "return_dict", "an input with the name `return_dict`"),
    ],
)
def test_models_that_transformers_cannot_express(old: str, new: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(archspec.ArchError, match=message) as caught:
        archspec.to_transformers(load(TINY.replace(old, new)), tmp_path / "folder")
    assert caught.value.diagnostics[0].code == "untranslatable"
    assert not [*tmp_path.iterdir()]


PLAIN = """
import std {{ Linear }}
dim batch
layer Table(n)(x [batch, n]) -> [batch, n] {{
  rows: buffer [n]
  return x + .rows
}}
block Net(n = 4)(x [batch, n]{more}) -> (y [batch, n]) {{
{tie}  return x |> a: Table(n) |> b: Table(n){last}
}}
model "plain" = Net()
"""


@pytest.mark.parametrize(
    ("more", "tie", "last", "message"),
    [
        ("", "", "", "transformers cannot save a model without parameters"),
        ("", "  tie b = a\n", " |> l: Linear(n, n)", "transformers cannot save tied buffers, and `b.rows` is one"),
        (
            ", return_dict [n]",
            "",
            " |> l: Linear(n, n) |> + return_dict",
            "transformers uses an input with the name `ret",
        ),
        ("", "", " |> l.type: Linear(n, n)", "transformers cannot find `l.type.weight`: `type` is an attribute of"),
    ],
)
def test_what_transformers_cannot_save(more: str, tie: str, last: str, message: str) -> None:
    with pytest.raises(archspec.ArchError) as caught:
        folder_files(
            load(PLAIN.format(more=more, tie=tie, last=last).replace("import", "import" if last else "# import"))
        )
    (found,) = caught.value.diagnostics
    assert found.code == "untranslatable" and found.message.startswith(message)


def test_a_folder_is_not_written_to_unasked(tmp_path: Path) -> None:
    def refused(folder: Path, **force: bool) -> tuple[str, str, str | None]:
        with pytest.raises(archspec.ArchError) as caught:
            archspec.to_transformers(model, folder, **force)
        (found,) = caught.value.diagnostics
        return found.code, found.message, found.help

    model = load(TINY)
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    file.write_text("it")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for path in (folder, file, tmp_path / "link"):
        help = "use --force to replace the files that are written; its other files are kept"
        assert refused(path) == ("usage", f"`{path}` already exists", help)
    assert refused(file, force=True) == ("usage", f"`{file}` is not a folder", None)
    assert [*folder.iterdir()] == [] and file.read_text() == "it"
    archspec.to_transformers(model, folder, force=True)
    archspec.to_transformers(model, tmp_path / "new", force=True)
    assert {path.name for path in folder.iterdir()} == {path.name for path in (tmp_path / "new").iterdir()} != set()


def test_the_command_writes_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "it.arch").write_text(TINY, encoding="utf-8")
    folder = tmp_path / "folder"
    command = ["build", str(tmp_path / "it.arch"), "--to", "transformers"]
    assert main(command) == 2
    assert "name it with `-o FOLDER`" in capsys.readouterr().err
    assert main([*command, "-o", str(folder)]) == 0
    assert read_files(folder) == folder_files(load(TINY))
    assert main([*command, "-o", str(folder)]) == 2
    assert f"`{folder}` already exists" in capsys.readouterr().err
    (folder / "model.safetensors").write_bytes(b"weights")
    assert main([*command, "-o", str(folder), "--force", "--set", "layers=3"]) == 0
    assert json.loads((folder / "config.json").read_text(encoding="utf-8"))["layers"] == 3
    assert (folder / "model.safetensors").read_bytes() == b"weights"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "it.arch"]
    assert main([*command, "-o", str(tmp_path / "it.arch"), "--force"]) == 2
    assert main([*command, "-o", str(tmp_path / "none" / "folder")]) == 2
    assert capsys.readouterr().err.count("error[usage]") == 2
