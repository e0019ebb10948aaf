"""Configurations as they come: folders, streams, data, objects; without a type, with fields that nobody knows."""

import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from checkpoints import write as write_checkpoint
from families import TYPES, mapping
from hints import hints
from small import load_table

import archspec
from archspec.testing import main

SMALL: dict[str, Any] = {"model_type": "bert", "num_hidden_layers": 1, "vocab_size": 99}
TOTAL = 8_150_784
"""The parameters of SMALL."""

with_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")


def error(spec: Any) -> archspec.Diagnostic:
    with pytest.raises(archspec.ArchError) as caught:
        archspec.load(spec)
    return caught.value.diagnostics[0]


def write(folder: Path, config: Any, name: str = "config.json") -> str:
    (folder / name).write_text(config if isinstance(config, str) else json.dumps(config))
    return str(folder / name)


# Folders and streams --------------------------------------------------------------------------------------------------


def test_a_linked_folder_gives_the_model_its_name(tmp_path: Path) -> None:
    (tmp_path / "blob").write_text(json.dumps(SMALL))
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "config.json").symlink_to(tmp_path / "blob")
    (tmp_path / "tiny").symlink_to(tmp_path / "real")
    for name in ("real", "tiny", "real"):
        assert archspec.load(tmp_path / name).name == name
        assert load_table(tmp_path / name)[0].model == name


def test_a_folder_that_changes_is_read_again(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    assert load_table(tmp_path)[0].params.total == archspec.load(tmp_path).params.total == TOTAL
    write(tmp_path, SMALL | {"vocab_size": 100})
    assert load_table(tmp_path)[0].params.total == archspec.load(tmp_path).params.total == TOTAL + 768


def test_a_folder_without_a_configuration_is_refused(tmp_path: Path) -> None:
    assert error(tmp_path).code == "unreadable"
    (tmp_path / "config.json").mkdir()
    assert error(tmp_path).code == "unreadable"


def test_a_folder_with_weights_only_is_its_checkpoint(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "model.safetensors", {"encoder.weight": (2, 3), "encoder.bias": (3,)})
    assert load_table(tmp_path)[0].params.total == 9
    found = error(tmp_path)
    assert found.message == f"{tmp_path} is a checkpoint: it has tensors, but no computation"
    write(tmp_path, SMALL)
    assert load_table(tmp_path)[0].params.total == TOTAL


def test_all_commands_with_configurations_read_them_as_specified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, {"hidden_size": 96, "num_hidden_layers": 1, "vocab_size": 99, "house_style": 3})
    reading = ["--type", "bert", "--ignore", "house_*"]
    for command in (["check"], ["count"], ["cost"], ["formula", "--open", "hidden"], ["graph"], ["build"], ["import"]):
        assert main([*command, path, *reading]) == 0
        assert main([*command, path]) == 1
    for command in (["compare"], ["diff"]):
        assert main([*command, path, path, *reading]) == 0
    assert main(["explain", path, "0.5M", *reading]) in (0, 1)
    assert "missing field `model_type`" in capsys.readouterr().err


@pytest.mark.parametrize("space", ["", "\n \t", "\ufeff"])
def test_a_configuration_on_standard_input(space: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("-", "/dev/stdin"):
        data = (space + json.dumps(SMALL)).encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        model = archspec.load(path)
        assert (model.name, model.params.total) == ("bert", TOTAL)


def test_standard_input_is_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for layers in (1, 2, 1):
        data = json.dumps(SMALL | {"num_hidden_layers": layers}).encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert load_table("/dev/stdin")[0].params.total == TOTAL + (layers - 1) * 7_087_872


def test_a_spec_on_standard_input_by_its_other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'import bert { Bert }\nmodel "b" = Bert(layers = 1, vocab = 99)\n'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert archspec.load("/dev/stdin").params.total == TOTAL


def run(command: str) -> subprocess.CompletedProcess[str]:
    line = f"{command.replace('archspec', f'{sys.executable} -m archspec', 1)}"
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)


@with_pipes
@pytest.mark.parametrize("redirected", ["/dev/stdin < {}", "<(cat {})", "/dev/fd/7 7< {}", "- < {}"])
def test_redirections_of_a_shell(redirected: str, tmp_path: Path) -> None:
    path = write(tmp_path, SMALL)
    done = run("archspec count --depth 0 " + redirected.format(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{TOTAL:,} parameters" in done.stdout and done.stdout.startswith("bert\n")


@with_pipes
def test_a_pipe_with_a_name(tmp_path: Path) -> None:
    path = str(tmp_path / "config.json")
    os.mkfifo(path)
    writer = threading.Thread(target=Path(path).write_text, args=(json.dumps(SMALL),))
    writer.start()
    assert archspec.load(path).params.total == TOTAL
    writer.join()


@with_pipes
def test_a_file_that_is_open(tmp_path: Path) -> None:
    with open(write(tmp_path, SMALL)) as file:
        assert archspec.load(f"/dev/fd/{file.fileno()}").params.total == TOTAL


@with_pipes
def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archspec.pipeline.streams.WRITER_TIMEOUT", 0.05)
    os.mkfifo(tmp_path / "config.json")
    found = error(tmp_path / "config.json")
    assert (found.code, "no process writes" in found.message) == ("unreadable", True)


@with_pipes
def test_a_slow_writer_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archspec.pipeline.streams.WRITER_TIMEOUT", 0.01)
    os.mkfifo(tmp_path / "slow")
    writer = subprocess.Popen(["bash", "-c", f"exec > {tmp_path}/slow; sleep 0.3; echo '{json.dumps(SMALL)}'"])
    reader = os.open(tmp_path / "slow", os.O_RDONLY)  # waits until the other process has opened it
    assert archspec.load(f"/dev/fd/{reader}").params.total == TOTAL
    os.close(reader)
    assert writer.wait(10) == 0


@with_pipes
@pytest.mark.parametrize(("endless", "code"), [("yes", "budget"), ("yes '{'", "budget"), ("cat /dev/zero", "budget")])
def test_a_stream_that_never_ends(endless: str, code: str) -> None:
    done = run(f"archspec count <({endless})")
    assert done.returncode == 1 and f"error[{code}]" in done.stderr


def test_a_closed_or_empty_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert [error(path).code for path in ("-", "/dev/stdin")] == ["unreadable"] * 2
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert error("-").code == "no-model"
    assert error("/dev/fd/987").code == "unreadable"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"model_type": "b\xff')))
    assert error("-").code == "not-text"


# Data and objects -----------------------------------------------------------------------------------------------------


class Object:
    """What the configurations of `transformers` have."""

    def __init__(self, fields: Any) -> None:
        self.model_type = "bert"
        self.fields = fields

    def to_dict(self) -> Any:
        return self.fields


class ReadOnly(Mapping[str, Any]):
    def __getitem__(self, name: str) -> Any:
        return SMALL[name]

    def __iter__(self) -> Iterator[str]:
        return iter(SMALL)

    def __len__(self) -> int:
        return len(SMALL)


def test_data_that_no_configuration_has() -> None:
    circle: dict[str, Any] = {"model_type": "bert"}
    circle["a"] = circle
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    for wrong in (
        circle,
        {"a": deep},
        {"a": {1, 2}},
        {"model_type": "bert", "vocab_size": float("nan")},
        {(1, 2): 3},
        Object([1]),
        {"a": b"x"},
    ):
        assert error(wrong).code == "wrong-kind"
    found = error(Object([1])).message
    assert found == "configuration cannot be written as JSON: `to_dict()` returned list"
    assert error({"model_type": "bert", "a": "x" * 4 * 2**20}).code == "budget"
    assert error({"model_type": "bert", 1: 2, "1": 3}).code == "duplicate-name"
    assert error({"model_type": "bert", "vocab_sise": 3}).code == "unknown-name"
    assert error(3).message == "expected a model, found an object of type int"


@pytest.mark.parametrize("config", [SMALL, Object(SMALL), ReadOnly(), archspec.Configuration(SMALL)])
def test_functions_take_data(config: Any) -> None:
    assert archspec.load(config).params.total == TOTAL
    assert archspec.load(config, layers=2).params.total == TOTAL + 7_087_872
    assert archspec.cost(config, batch=1, seq=2).model == "bert"
    assert archspec.compare(config, SMALL | {"num_hidden_layers": 2}).models[0].params.total == TOTAL
    assert not archspec.diff(config, SMALL)
    assert archspec.explain(config, TOTAL).fits
    assert archspec.formula(config, "layers").at(layers=1) == TOTAL
    assert archspec.import_config(config).splitlines()[0] == "# BertModel, from <configuration>."


def test_thousands_of_labels_are_no_reason_to_refuse(tmp_path: Path) -> None:
    names = [f"label number {i}, with a name of usual length" for i in range(21_841)]
    config = {
        "model_type": "vit",
        "architectures": ["ViTForImageClassification"],
        "id2label": dict(enumerate(names)),
        "label2id": {name: i for i, name in enumerate(names)},
    }
    assert archspec.load(write(tmp_path, config)).hyperparameters["labels"] == 21_841


# Types and unknown fields ---------------------------------------------------------------------------------------------


def test_the_text_says_where_the_type_is_from() -> None:
    config = {"architectures": ["BertForMaskedLM"], "num_hidden_layers": 1}
    lines = ["# BertForMaskedLM, from <configuration>.", "# Without `model_type`: bert, the one with BertForMaskedLM."]
    assert archspec.import_config(config).splitlines()[:2] == lines
    assert "# Without `model_type`: bert, as specified.\n" in archspec.import_config(config, type="bert")


def test_a_type_that_nothing_shows() -> None:
    for config in (
        {},
        {"architectures": None},
        {"architectures": ["Foo"]},
        {"architectures": [3]},
        {"hidden_size": 48},
    ):
        found = error(config)
        assert found.code == "missing-argument" and "`--type bert`" in (found.help or "")
        assert archspec.load(archspec.Configuration({**config, "architectures": []}, "bert")).name == "bert"


@pytest.mark.sampled(5)
@pytest.mark.parametrize("type", TYPES)
def test_a_missing_type_is_that_of_the_architecture(type: str) -> None:
    """Where an architecture is one of several types, the error names them all."""
    name = [*mapping(type).architectures][-1]
    sharing = [other for other in TYPES if name in mapping(other).architectures]
    if len(sharing) > 1:
        found = error({"architectures": [name]})
        assert found.code == "missing-argument" and all(f"`{other}`" in found.message for other in sharing)
    else:
        least = {"architectures": [name], **hints(type).get("defaults", {})}
        models = [archspec.load(config) for config in (least, {**least, "model_type": type})]
        assert models[0].hyperparameters == models[1].hyperparameters and models[0].tensors == models[1].tensors


def test_a_type_against_that_of_the_configuration() -> None:
    for type, code, help in (
        ("brt", "usage", "did you mean `bert`?"),
        ("unheard-of", "usage", "supported: "),
    ):
        found = error(archspec.Configuration(SMALL, type))
        assert found.code == code and found.help is not None and found.help.startswith(help)
    assert archspec.load(archspec.Configuration(SMALL, "bert")).params.total == TOTAL


@pytest.mark.parametrize("stated", ["kimi_k2", "roberta", 3, None, 'bert"\n'])
def test_a_specified_type_replaces_that_of_the_configuration(
    stated: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, SMALL | {"model_type": stated})
    note = f"read as `bert`, as specified, instead of its `model_type`, {json.dumps(stated)}"
    for _ in range(2):  # compiled, and from the cache
        assert main(["count", path, "--type", "bert"]) == 0
        out = capsys.readouterr().out
        assert f"{TOTAL:,} parameters" in out and note in out.splitlines()
    lines = archspec.import_config(path, type="bert").splitlines()
    assert lines[1] == f"# R{note[1:]}."
    assert archspec.load(archspec.Configuration(path, "bert")).params.total == TOTAL
    found = error(archspec.Configuration(SMALL | {"model_type": stated, "architectures": ["BertModel"]}, "gpt2"))
    assert found.message == "unknown architecture `BertModel` for model type `gpt2`"


def test_an_unknown_type_with_a_known_architecture(tmp_path: Path) -> None:
    config = SMALL | {"model_type": "own_bert", "architectures": ["BertModel"]}
    note = 'read as `bert`, which has its architecture, instead of its `model_type`, "own_bert"'
    assert archspec.load(config).params.total == TOTAL
    assert archspec.load(config).count().table.notes == (note,)
    assert error({"model_type": "brt", "architectures": ["BertFoo"]}).help == "did you mean `bert`?"
    assert error({"model_type": "own", "architectures": ["SiglipModel", "BertModel"]}).help.startswith("supported: ")


def test_types_and_classes_of_transformers_have_no_similar_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not misspelt; `lift` can read them."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "torch" else name)
    path = write(tmp_path, {"model_type": "funnel", "architectures": ["FunnelModel"]})
    lift = f"draft a spec with `archspec lift {path}`: it runs transformers (not installed: torch)"
    assert error(path).help == f"{lift}, which has this type"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    known = {"model_type": "funnel", "architectures": ["Gemma3ForCausalLM"]}
    help = error(write(tmp_path, known)).help
    assert help == (
        f"{lift.replace('not installed: torch', 'installed')}, which has this type; "
        "`gemma3_text` has `Gemma3ForCausalLM`: use `--type gemma3_text`"
    )
    assert error({"model_type": "dinov2", "architectures": ["Dinov2Backbone"]}).help.startswith("draft a spec with ")
    assert error({"model_type": "dinov2", "architectures": ["Dinov2Modle"]}).help == "did you mean `Dinov2Model`?"


def test_unknown_fields_are_ignored_only_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, SMALL | {"foo_a": 1, "foo_b": {"hidden_size": 3}, "bar[1]": 2})
    assert main(["count", path]) == 1
    assert "use `--ignore foo_a` if it affects neither" in capsys.readouterr().err
    assert main(["count", path, "--ignore", "foo_*"]) == 1
    assert "bar[1]" in capsys.readouterr().err
    for command in (["count", path], ["import", path], ["diff", path, path], ["compare", path, "bert-base-uncased"]):
        assert main([*command, "--ignore", "foo_*", "--ignore", "bar[1]"]) == 0
    lines = archspec.import_config(path, ignore=["foo_*", "bar[1]"]).splitlines()
    assert lines[1:4] == [f"# Ignored as specified: {name}" for name in ("foo_a", "foo_b", "bar[1]")]
    assert archspec.load(archspec.Configuration(path, ignore=("*",))).params.total == TOTAL


def test_what_has_an_effect_is_never_ignored(tmp_path: Path) -> None:
    config = SMALL | {"hidden_size": 64, "position_embedding_type": "relative_key"}
    assert error(archspec.Configuration(config, ignore=("*",))).code == "unsupported"
    found = error(archspec.Configuration(config, ignore=("hidden_size",)))
    assert (found.code, "cannot be ignored" in found.message) == ("usage", True)
    rope = {"model_type": "llama", "rope_scaling": {"rope_type": "foo", "factor": 2.0}}
    for name in ("rope_scaling", "rope_scaling.factor", "*"):
        with pytest.raises(archspec.ArchError, match="the computation of `rope_scaling` of the type `foo`"):
            archspec.import_config(rope, ignore=(name,))


def test_a_name_cannot_leave_the_comment() -> None:
    name = 'x\nmodel "evil" = Bert()\r\u2028'
    lines = archspec.import_config(SMALL | {name: 1}, ignore=[name]).splitlines()
    assert [line for line in lines if "evil" in line] == [lines[1]] and lines[1].startswith("# ")


def test_options_are_part_of_what_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path, {"num_hidden_layers": 1, "foo": 2})
    for type in ("bert", "electra", "bert"):
        config = archspec.Configuration(path, type, ("foo",))
        assert load_table(config)[0].hyperparameters == archspec.load(config).hyperparameters
    with pytest.raises(archspec.ArchError):
        load_table(path)
    with pytest.raises(archspec.ArchError):
        load_table(archspec.Configuration(path, "bert"))


def test_only_configurations_are_imported() -> None:
    for spec in ("bert-base-uncased", "google-bert/bert-base-uncased"):
        with pytest.raises(archspec.ArchError, match="is not a configuration"):
            archspec.import_config(spec)


NAMELESS = [
    ({"model_type": "bert"}, "read as BertModel: the configuration names no `architectures`; a head is not included"),
    ({"model_type": "gpt2", "architectures": []}, "read as GPT2Model: "),
    ({"model_type": "llama", "architectures": None}, "read as LlamaModel: "),
    ({"model_type": "dinov2"}, "read as Dinov2Model: the configuration names no `architectures`"),
    ({"model_type": "t5"}, "read as T5ForConditionalGeneration: the configuration names no `architectures`"),
]


@pytest.mark.parametrize(("config", "start"), NAMELESS)
def test_the_class_of_a_configuration_that_names_none_is_noted(
    config: dict[str, object], start: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note = next(note for note in archspec.load(config).count().table.notes if note.startswith(start))
    assert note.endswith("; a head is not included") == (config["model_type"] not in ("t5", "dinov2"))
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    for command in (["count", str(path), "--depth", "0"], ["cost", str(path), "--depth", "0"]):
        assert main(command) == 0
        assert note in capsys.readouterr().out.splitlines()
    assert main(["compare", str(path), "bert-base-uncased"]) == 0
    assert f": {note}\n" in capsys.readouterr().out


def test_a_configuration_that_names_its_class_has_no_note_of_it() -> None:
    config = {"model_type": "bert", "architectures": ["BertForMaskedLM"]}
    assert archspec.load(config).count().table.notes == ()
