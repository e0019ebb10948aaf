"""`archspec verify`: every difference between a model and a checkpoint, other spellings said and passed over."""

import csv
import io
import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from checkpoints import header, safetensors, sizes, state, storage, tensor, torch_zip, write, write_shards
from small import load

import archspec
from archspec import ArchError, Model, Rename, Verification
from archspec.testing import main

SMALL = {"vocab": 20, "hidden": 8, "layers": 3, "heads": 2, "ffn": 16, "positions": 10}
SETTINGS = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
ENCODER = archspec.load("bert-base-uncased", **SMALL)
HEADS = archspec.load("bert-base-uncased-pretraining", **SMALL)
Tensors = dict[str, tuple[int, ...]]


def tensors(model: Model, *, tied: bool = False) -> Tensors:
    """A model's tensors and buffers as a checkpoint has them; the names that are not counted only if `tied`."""
    found = {t.name: t.shape for t in model.tensors if tied or not t.tied_to}
    return found | {b.name: b.shape for b in model.buffers}


def verify(folder: Path, model: Model, stored: Mapping[str, tuple[int, ...]]) -> Verification:
    path = write(folder / "model.safetensors", stored)
    return archspec.verify(model, path)


def brief(found: Verification) -> list[tuple[str, str, str]]:
    return [(f.kind, f.fold.pattern, f.fold.ranges) for f in found.findings]


def spelt(found: Verification) -> list[tuple[str, str, int]]:
    return [(s.checkpoint, s.spec, s.names) for s in found.spellings]


# Differences ----------------------------------------------------------------------------------------------------------


def test_a_checkpoint_that_is_the_model(tmp_path: Path) -> None:
    found = verify(tmp_path, ENCODER, tensors(ENCODER))
    assert found.is_exact and not (found.findings or found.spellings or found.notes or found.fits)
    assert found.stored.elements == found.params == ENCODER.params.total
    assert found.stored.bytes == 4 * ENCODER.params.total
    assert found.dtypes == {"float32": found.stored}


def test_differences_are_folded_over_the_layers(tmp_path: Path) -> None:
    stored = tensors(ENCODER)
    for i in range(3):
        stored[f"encoder.layer.{i}.output.dense.bias"] = (9,)
        stored[f"encoder.layer.{i}.extra.scale"] = (i // 2,)
    del stored["encoder.layer.0.intermediate.dense.weight"], stored["encoder.layer.2.intermediate.dense.weight"]
    assert brief(verify(tmp_path, ENCODER, stored)) == [
        ("missing", "encoder.layer.*.intermediate.dense.weight", "0,2"),
        ("unexpected", "encoder.layer.*.extra.scale", "0-1"),
        ("unexpected", "encoder.layer.2.extra.scale", ""),
        ("shape", "encoder.layer.*.output.dense.bias", "0-2"),
    ]


def test_shapes_are_compared_not_sizes(tmp_path: Path) -> None:
    stored = tensors(ENCODER) | {"pooler.dense.weight": (64,), "embeddings.word_embeddings.weight": (8, 20)}
    found = verify(tmp_path, ENCODER, stored)
    assert [(f.spec, f.checkpoint) for f in found.findings] == [((20, 8), (8, 20)), ((8, 8), (64,))]


def test_an_empty_checkpoint_lacks_everything(tmp_path: Path) -> None:
    found = verify(tmp_path, HEADS, {})
    assert {name for f in found.findings for name in f.fold.names} == set(tensors(HEADS))
    assert {f.kind for f in found.findings} == {"missing"} and found.stored.names == 0


BUFFERED = """
block Net(n = 4)(x [..., n]) -> [..., n] {
  scale: param [n]
  steps: buffer [n]
  return x * .scale + .steps
}
"""


def test_buffers_are_expected_and_no_parameters(tmp_path: Path) -> None:
    model = load(BUFFERED)
    found = verify(tmp_path, model, tensors(model))
    assert (found.is_exact, found.params, found.buffers, found.stored.elements) == (True, 4, 1, 8)
    (finding,) = verify(tmp_path, model, {"scale": (4,)}).findings
    assert (finding.kind, finding.fold.pattern, finding.what, finding.spec) == ("missing", "steps", "buffer", (4,))


@pytest.mark.parametrize("seed", range(20))
def test_exactly_the_changes_that_were_made_are_found(tmp_path: Path, seed: int) -> None:
    """Tensors removed, added and reshaped at random, under a prefix or in old spelling or neither."""
    source = random.Random(seed)
    spec = tensors(ENCODER)
    removed = set(source.sample(sorted(spec), source.randint(0, 8)))
    reshaped = set(source.sample(sorted(set(spec) - removed), source.randint(0, 8)))
    added = {f"{source.choice(['head', 'encoder.layer.0', 'encoder.layer.7'])}.new.{i}" for i in range(3)}
    stored = {name: (*shape, 2) if name in reshaped else shape for name, shape in spec.items() if name not in removed}
    stored |= dict.fromkeys(added, (1,))
    if is_old := source.random() < 0.5:
        stored = {old(name): shape for name, shape in stored.items()}
    prefix = source.choice(["", "bert.", "model.encoder."])
    found = verify(tmp_path, ENCODER, {prefix + name: shape for name, shape in stored.items()})
    by_kind = {"missing": removed, "unexpected": {prefix + name for name in added}, "shape": reshaped}
    for kind, names in by_kind.items():
        assert {name for f in found.findings if f.kind == kind for name in f.fold.names} == names
    assert found.is_exact == (not (removed or reshaped or added))
    assert bool(spelt(found)) == bool(prefix or is_old)


def old(name: str) -> str:
    return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")


# Ties -----------------------------------------------------------------------------------------------------------------

TIED = "cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"


def test_either_name_of_a_tied_tensor_is_enough(tmp_path: Path) -> None:
    stored = tensors(HEADS)
    found = verify(tmp_path, HEADS, stored)
    assert found.is_exact
    assert found.notes == (
        f"not stored because it is tied to `{TIED[1]}`: `{TIED[0]}`",
        "not stored because it is tied to `cls.predictions.bias`: `cls.predictions.decoder.bias`",
    )
    stored[TIED[0]] = stored.pop(TIED[1])
    found = verify(tmp_path, HEADS, stored)
    assert found.is_exact and found.notes[0] == f"not stored because it is tied to `{TIED[0]}`: `{TIED[1]}`"


def test_a_tied_tensor_that_is_stored_twice_is_said(tmp_path: Path) -> None:
    found = verify(tmp_path, HEADS, tensors(HEADS, tied=True))
    assert found.is_exact and found.stored.elements == HEADS.params.total + 20 * 8 + 20
    assert found.notes[0] == f"stored separately (equality was not checked) from `{TIED[1]}`: `{TIED[0]}`"


def test_one_wrong_shape_of_two_names(tmp_path: Path) -> None:
    found = verify(tmp_path, HEADS, tensors(HEADS, tied=True) | {TIED[0]: (20, 9)})
    assert brief(found) == [("shape", TIED[0], "")]


def test_a_tie_between_buffers(tmp_path: Path) -> None:
    text = "block It(n = 4)(x [n]) -> [n] {\n  a: buffer [n]\n  b: buffer [n]\n  tie b = a\n  return x + .a + .b\n}\n"
    model = load(text)
    assert model.count().table.buffer_ties == {"b": "a"}
    assert verify(tmp_path, model, {"a": (4,)}).is_exact and verify(tmp_path, model, {"b": (4,)}).is_exact
    assert brief(verify(tmp_path, model, {})) == [("missing", "a", "")]
    untied = load(text.replace("  tie b = a\n", ""))
    assert brief(verify(tmp_path, untied, {"a": (4,)})) == [("missing", "b", "")]
    assert [change.kinds for change in archspec.diff(untied, model).tensors] == [("tied",)]


def test_a_tied_tensor_that_is_missing_is_missing_once(tmp_path: Path) -> None:
    stored = tensors(HEADS)
    del stored[TIED[1]]
    assert brief(verify(tmp_path, HEADS, stored)) == [("missing", TIED[1], "")]


def torch_file(folder: Path, model: Model, ties: Mapping[str, str]) -> Path:
    """A torch file of all names of a model, where `ties` are of one storage and everything else is not."""
    shapes = tensors(model, tied=True)
    value = state(shapes)
    value |= {alias: value[name] for alias, name in ties.items()}
    used = {call.arguments[0].identifier[2] for call in value.values()}
    path = folder / "pytorch_model.bin"
    path.write_bytes(torch_zip(value, {key: size for key, size in sizes(shapes).items() if key in used}))
    return path


def test_names_of_one_storage_are_tied(tmp_path: Path) -> None:
    ties = {t.name: t.tied_to for t in HEADS.tensors if t.tied_to}
    found = archspec.verify(HEADS, torch_file(tmp_path, HEADS, ties))
    assert found.is_exact and found.notes == ()
    assert found.stored.elements == found.params
    assert found.stored.names == found.stored.tensors + 2


def test_what_the_spec_does_not_tie_is_told(tmp_path: Path) -> None:
    base = "encoder.layer.0.attention.self"
    ties = {f"encoder.layer.{i}.attention.self.{part}.bias": f"{base}.query.bias" for i in (1, 2) for part in ("key",)}
    found = archspec.verify(ENCODER, torch_file(tmp_path, ENCODER, ties))
    (finding,) = found.findings
    assert (finding.kind, finding.other) == ("tied", f"{base}.query.bias")
    assert (finding.fold.pattern, finding.fold.ranges) == ("encoder.layer.*.attention.self.key.bias", "1-2")
    assert found.stored.elements == found.params - 2 * 8


def test_stretches_that_overlap_are_said(tmp_path: Path) -> None:
    run = storage("0", 12)
    path = tmp_path / "model.bin"
    path.write_bytes(torch_zip({"scale": tensor(run, (4,)), "steps": tensor(run, (4,), 2)}, {"0": 48}))
    found = archspec.verify(load(BUFFERED), path)
    assert found.notes == ("`scale` and `steps` may share elements; the totals count them for each tensor",)
    places = [("scale", 0), ("steps", 2), ("third", 3), ("fourth", 7), ("last", 11)]
    for count, more in ((3, " (and 1 more pair)"), (4, " (and 1 more pair)"), (5, " (and 1 more pair)")):
        parts = {name: tensor(run, (4 if name != "last" else 1,), start) for name, start in places[:count]}
        path.write_bytes(torch_zip(parts, {"0": 48}))
        note = f"`scale` and `steps` may share elements{more}; the totals count them for each tensor"
        assert archspec.verify(load(BUFFERED), path).notes == (note,)
    longest = {"scale": tensor(run, (4,), 4), "steps": tensor(run, (12,)), "third": tensor(run, (2,), 9)}
    path.write_bytes(torch_zip(longest | {"fourth": tensor(storage("1", 4), (4,))}, {"0": 48, "1": 16}))
    note = "`steps` and `scale` may share elements (and 1 more pair); the totals count them for each tensor"
    assert archspec.verify(load(BUFFERED), path).notes == (note,)
    path.write_bytes(torch_zip({"scale": tensor(run, (4,)), "steps": tensor(run, (4,), 4)}, {"0": 48}))
    assert archspec.verify(load(BUFFERED), path).notes == ()


# Spellings ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["bert.", "model.", "module.bert.", "_orig_mod."])
def test_a_prefix_of_the_checkpoint(tmp_path: Path, prefix: str) -> None:
    found = verify(tmp_path, ENCODER, {prefix + name: shape for name, shape in tensors(ENCODER).items()})
    assert found.is_exact and spelt(found) == [(prefix, "", 55)]


def test_a_prefix_of_the_spec(tmp_path: Path) -> None:
    stored = tensors(ENCODER)
    found = verify(tmp_path, HEADS, stored)
    assert spelt(found) == [("", "bert.", 55)]
    assert {name for f in found.findings for name in f.fold.names} == {n for n in tensors(HEADS) if n.startswith("cls")}


def test_a_prefix_does_not_hide_what_is_without_it(tmp_path: Path) -> None:
    stored = {f"bert.{name}": shape for name, shape in tensors(ENCODER).items()}
    stored["pooler.dense.bias"] = (8,)
    found = verify(tmp_path, ENCODER, stored)
    assert brief(found) == [("unexpected", "pooler.dense.bias", "")]


def test_norms_as_they_once_were(tmp_path: Path) -> None:
    found = verify(tmp_path, ENCODER, {old(name): shape for name, shape in tensors(ENCODER).items()})
    assert found.is_exact and spelt(found) == [("gamma", "weight", 7), ("beta", "bias", 7)]


def test_old_and_new_spelling_at_once_is_a_difference(tmp_path: Path) -> None:
    stored = tensors(ENCODER) | {"embeddings.LayerNorm.gamma": (8,)}
    for given in (stored, {"embeddings.LayerNorm.gamma": (8,)} | stored):
        found = verify(tmp_path, ENCODER, given)
        assert brief(found) == [("unexpected", "embeddings.LayerNorm.gamma", "")] and spelt(found) == []


def test_old_names_of_norms_below_a_prefix_of_the_spec(tmp_path: Path) -> None:
    model = load(
        "import std { LayerNorm }\n"
        "block Net(n = 4)(x [n]) -> [n] { return x |> net.one: LayerNorm(n) |> net.two: LayerNorm(n) }\n"
    )
    stored = {f"{norm}.{name}": (4,) for norm in ("one", "two") for name in ("gamma", "beta")}
    found = archspec.verify(model, write(tmp_path / "model.safetensors", stored))
    assert found.is_exact and spelt(found) == [("", "net.", 4), ("gamma", "weight", 2), ("beta", "bias", 2)]


def test_gamma_of_what_is_no_norm_is_a_difference(tmp_path: Path) -> None:
    stored = tensors(ENCODER)
    stored["pooler.dense.gamma"] = stored.pop("pooler.dense.weight")
    assert [kind for kind, *_ in brief(verify(tmp_path, ENCODER, stored))] == ["missing", "unexpected"]


@pytest.mark.parametrize(
    ("old", "new", "name", "found"),
    [
        ("a.*.b.*.c", "x.*.y.*", "a.1.b.2.b.3.c", "x.1.y.2.b.3"),
        ("*.b*.*", "*/*/*", "a.c.b7.d.e", "a.c/7/d.e"),
        ("a.*", "b.*", "a.", "b."),
        ("a.*", "b.*", "a", None),
        ("a", "b", "a", "b"),
        ("a", "b", "a.a", None),
        ("a.*.c", "b.*", "a.c", None),
    ],
)
def test_each_star_of_a_renaming_matches_as_little_as_possible(
    old: str, new: str, name: str, found: str | None
) -> None:
    assert Rename(old, new).apply(name) == found


@pytest.mark.parametrize("joined", [False, True])
def test_mixtral_as_published_and_as_it_lives(joined: bool, tmp_path: Path) -> None:
    small = {"vocab": 20, "hidden": 8, "layers": 2, "heads": 2, "groups": 1, "ffn": 6, "experts": 3}
    model = archspec.load("mixtral-8x7b", **small, joined=joined)
    found = verify(tmp_path, model, tensors(model))
    assert found.is_exact and not found.spellings
    stored = {name.replace("block_sparse_moe", "mlp"): shape for name, shape in tensors(model).items()}
    found = verify(tmp_path, model, stored)
    assert found.is_exact and spelt(found) == [("mlp", "block_sparse_moe", 6 if joined else 20)]


def test_all_spellings_at_once(tmp_path: Path) -> None:
    """`bert.` before the encoder, heads, gamma and beta, no decoder: what came from TensorFlow looks like this."""
    stored = {old(name): shape for name, shape in tensors(HEADS).items()}
    found = verify(tmp_path, ENCODER, stored)
    assert spelt(found) == [("bert.", "", 55), ("gamma", "weight", 7), ("beta", "bias", 7)]
    assert {f.kind for f in found.findings} == {"unexpected"}
    assert {name for f in found.findings for name in f.fold.names} == {n for n in stored if n.startswith("cls.")}
    assert found.fits == ("bert-base-uncased-pretraining",)
    assert verify(tmp_path, HEADS, stored).is_exact


# --rename -------------------------------------------------------------------------------------------------------------


def test_renamings_apply_in_order_and_say_so(tmp_path: Path) -> None:
    stored = {
        name.replace("encoder.layer", "h").replace("pooler.dense", "pool"): s for name, s in tensors(ENCODER).items()
    }
    path = write(tmp_path / "m.safetensors", stored)
    found = archspec.verify(
        ENCODER, path, {"h.*": "blocks.*", "blocks.*": "encoder.layer.*", "pool.*": "pooler.dense.*"}
    )
    assert found.is_exact
    assert spelt(found) == [
        ("h.*", "blocks.*", 48),
        ("blocks.*", "encoder.layer.*", 48),
        ("pool.*", "pooler.dense.*", 2),
    ]
    found = archspec.verify(ENCODER, path, {"h.*": "encoder.layer.*", "q.*": "p.*"})
    assert [f.fold.pattern for f in found.findings if f.kind == "unexpected"] == ["pool.weight", "pool.bias"]
    assert [(r.old, r.new) for r in found.unmatched] == [("q.*", "p.*")]


def test_renaming_two_names_into_one_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "m.safetensors", {"a.w": (1,), "b.w": (1,)})
    with pytest.raises(ArchError, match=r"--rename maps both `a\.w` and `b.w` to `b\.w`"):
        archspec.verify(ENCODER, path, {"a.*": "b.*"})


# The command ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    yield tmp_path


def wrong() -> Tensors:
    """An encoder with two layers too many, another feed-forward, no pooler, under a prefix."""
    deeper = archspec.load("bert-base-uncased", **{**SMALL, "layers": 5, "ffn": 32, "pooler": False})
    return {f"bert.{name}": shape for name, shape in tensors(deeper).items()} | {"position_ids": (1, 10)}


@pytest.mark.parametrize("format", ["table", "markdown", "csv", "json", "yaml"])
@pytest.mark.parametrize("case", ["exact", "wrong"])
def test_what_it_prints(
    inside: Path, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None], case: str, format: str
) -> None:
    stored = {old(n): s for n, s in tensors(HEADS).items()} if case == "exact" else wrong()
    write(inside / "model.safetensors", stored)
    spec = "bert-base-uncased-pretraining" if case == "exact" else "bert-base-uncased"
    assert main(["verify", spec, "model.safetensors", *SETTINGS, "--format", format]) == (case == "wrong")
    out, err = capsys.readouterr()
    assert err == ""
    golden(f"verify/{case}.{format}", out)


def test_all_formats_say_the_same(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(inside / "m.safetensors", wrong())

    def printed(format: str) -> str:
        assert main(["verify", "bert-base-uncased", "m.safetensors", *SETTINGS, "--format", format]) == 1
        return capsys.readouterr().out

    document = json.loads(printed("json"))
    assert document == yaml.safe_load(printed("yaml"))
    rows = list(csv.DictReader(io.StringIO(printed("csv"))))
    assert [row["name"] for row in rows] == [finding["name"] for finding in document["findings"]]
    assert sum(int(row["tensors"]) for row in rows) == sum(len(f["names"]) for f in document["findings"])
    assert document["stored"]["names"] == len(wrong())


def test_the_statuses(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(inside / "good.safetensors", tensors(ENCODER))
    write(inside / "other.safetensors", {"w": (1,)})
    (inside / "bad.safetensors").write_bytes(b"nothing")
    (inside / "bad.arch").write_text("model")

    def status(*arguments: str) -> int:
        return main(["verify", *arguments])

    assert status("bert-base-uncased", "good.safetensors", *SETTINGS) == 0
    assert status("bert-base-uncased", "other.safetensors", *SETTINGS) == 1
    assert status("bert-base-uncased", "bad.safetensors", *SETTINGS) == 2
    assert status("bert-base-uncased", "nowhere.safetensors") == 2
    assert status("bert-base-uncased", ".", "--format", "json") == 2
    assert status("bert-basis", "good.safetensors") == 2
    assert status("bad.arch", "good.safetensors") == 1
    assert status("bert-base-uncased", "good.safetensors", "--rename", "nothing") == 2
    assert status("bert-base-uncased", "good.safetensors", "--rename", "a.*=b") == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_renaming_of_nothing_is_warned_of(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(inside / "m.safetensors", tensors(ENCODER))
    assert main(["verify", "bert-base-uncased", "m.safetensors", *SETTINGS, "--rename", "h.*=encoder.*"]) == 0
    assert capsys.readouterr().err.startswith("warning[no-match]: `--rename h.*=encoder.*` matches no tensor")


def test_an_index_that_is_wrong_about_its_size(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = list(tensors(ENCODER).items())
    shards = {"m-1.safetensors": dict(names[:30]), "m-2.safetensors": dict(names[30:])}
    write_shards(inside, shards)
    assert main(["verify", "bert-base-uncased", ".", *SETTINGS]) == 0
    assert f"{4 * ENCODER.params.total:,} bytes (8.58 kB) in 2 files, all float32\n" in capsys.readouterr().out
    write_shards(inside, shards, metadata={"total_size": 12})
    assert main(["verify", "bert-base-uncased", ".", *SETTINGS]) == 1
    out = capsys.readouterr().out
    assert "wrong total size in the index" in out and "the index specifies 12 bytes" in out


def test_a_shard_alone_lacks_the_others(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = list(tensors(ENCODER).items())
    shards = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    write_shards(inside, {shards[0]: dict(names[:30]), shards[1]: dict(names[30:])})
    assert main(["verify", "bert-base-uncased", shards[0], *SETTINGS]) == 1
    out = capsys.readouterr().out
    assert ": 25 tensors missing\n" in out
    assert "\nthe file name indicates one of 2 shards; use their index to read all of them\n" in out
    assert main(["verify", "bert-base-uncased", "model.safetensors.index.json", *SETTINGS]) == 0


def test_a_table_for_people_ends_somewhere(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(inside / "m.safetensors", {f"x{i}.w": (1,) for i in range(1_500)})
    assert main(["verify", "bert-base-uncased", "m.safetensors", *SETTINGS]) == 1
    out = capsys.readouterr().out
    assert "1,500 tensors unexpected" in out and "\n523 more rows; use --format csv or json to show all\n" in out
    assert main(["verify", "bert-base-uncased", "m.safetensors", *SETTINGS, "--format", "csv"]) == 1
    assert capsys.readouterr().out.count("\nunexpected,") == 1_500


def test_names_that_would_act_on_a_terminal_or_a_page(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(inside / "m.safetensors", {"\x1b[31mred\n| x |": (1,), "`<b>`": (2,), "=1+1": (3,), "\u202e": (4,)})
    for format in ("table", "markdown"):
        assert main(["verify", "bert-base-uncased", "m.safetensors", *SETTINGS, "--format", format]) == 1
        assert capsys.readouterr().out.replace("\n", "").isprintable()
    for format in ("json", "yaml", "csv"):
        assert main(["verify", "bert-base-uncased", "m.safetensors", *SETTINGS, "--format", format]) == 1
        assert capsys.readouterr().out.replace("\n", "").isprintable()


def test_no_cell_of_a_spreadsheet_is_a_formula(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"=1+1": (1,), "+x": (2,), "-x": (3,), "@x": (4,), "a=b": (5,), "\t=x": (6,), "'x": (7,)}
    write(inside / "m.safetensors", names)
    assert main(["verify", "bert-base-uncased", "m.safetensors", *SETTINGS, "--format", "csv"]) == 1
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    found = [row["name"] for row in rows if row["kind"] == "unexpected"]
    assert found == ["'=1+1", "'+x", "'-x", "'@x", "a=b", "\\t=x", "'x"]


def test_the_python_function(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors(header({"w": (1,)})))
    assert not archspec.verify("bert-base-uncased", path).is_exact
    assert archspec.verify("bert-base-uncased", str(path)).model == "bert-base-uncased"
    with pytest.raises(ArchError, match="missing-file"):
        archspec.verify("bert-base-uncased", tmp_path / "nowhere")
