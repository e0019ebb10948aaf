"""What is kept between runs: private, plain data, and never believed when anything about it is not as it was.

A forged entry (a false total under a good checksum) shows whether an entry is believed.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from bundled import EVERYDAY
from paths import ROOT

import archspec
import archspec.pipeline.files
import archspec.pipeline.tables
from archspec import Table, pipeline, testing
from archspec.compiler.check import check_file
from archspec.compiler.resolve.unit import Unit
from archspec.core import resources
from archspec.core.diagnostics import Report
from archspec.pipeline import cache, files
from archspec.pipeline.model import get_compilation
from archspec.testing import main

PART = """
import std { Linear }
block Part(width)(x [..., width]) -> [..., width] {
  return x |> dense: Linear(width, width)
}
"""
SPEC = """
import "part.arch" { Part }
block Tiny(width = 2)(x [..., width]) -> [..., width] {
  return x |> part: Part(width)
}
model "tiny" = Tiny()
"""
TRUE, FALSE = 6, 99


def as_in_a_fresh_process() -> None:
    """Forget what this process keeps, but not the cache."""
    files._loaded.clear()
    pipeline.files._trees.clear()


class Home:
    """A spec in a folder of its own, a copy of the bundled specs, and the cache that is filled from them."""

    def __init__(self, folder: Path) -> None:
        self.spec = folder / "work" / "spec.arch"
        self.part = folder / "work" / "part.arch"
        self.specs = folder / "specs"
        self.cache = folder / "cache" / "archspec-dsl"
        self.spec.parent.mkdir()
        self.spec.write_text(SPEC)
        self.part.write_text(PART)
        shutil.copytree(ROOT / "specs", self.specs)

    def table(self, **overrides: Any) -> Table:
        """The table as a fresh process would find it."""
        as_in_a_fresh_process()
        return pipeline.tables.load_table(str(self.spec), overrides)[0]

    def total(self, **overrides: Any) -> int:
        return self.table(**overrides).params.total

    def entries(self, kind: str = "table") -> list[Path]:
        return sorted(self.cache.glob(f"{kind}-*"))

    def forge(self) -> None:
        """Puts a false total into what is kept."""
        (path,) = self.entries()
        entry = read(path)
        entry["data"][3] = [FALSE, FALSE, 0]
        entry["data"][4][0][2:4] = [FALSE - 2, FALSE - 2]
        entry["data"][4][0][1] = [FALSE - 2]
        write(path, entry)


def read(path: Path) -> Any:
    return json.loads(path.read_bytes().partition(b"\n")[2])


def write(path: Path, entry: Any) -> None:
    write_text(path, json.dumps(entry).encode())


def write_text(path: Path, body: bytes) -> None:
    path.write_bytes(b"%08x\n" % crc32(body) + body)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    made = Home(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(resources, "specs_root", lambda: str(made.specs))
    assert made.total() == TRUE
    yield made
    as_in_a_fresh_process()


def test_entries_are_json_and_private_whatever_the_umask(home: Home) -> None:
    shutil.rmtree(home.cache)
    before = os.umask(0)
    try:
        assert home.total() == TRUE
    finally:
        os.umask(before)
    assert stat.S_IMODE(home.cache.stat().st_mode) == 0o700
    paths = list(home.cache.iterdir())
    assert {path.name.split("-")[0] for path in paths} == {"table", "tree"}
    for path in paths:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        entry = read(path)
        assert set(entry) == {"is", "files", "data"}
        assert b"pickle" not in path.read_bytes()


def hyperparameters(name: str) -> set[str]:
    return set(dict(get_compilation(archspec.load(name)).compiled.module.hyperparameters))


@pytest.mark.parametrize("overrides", [{}, {"layers": 3}], ids=str)
def test_what_is_kept_is_what_would_be_made(overrides: dict[str, Any], home: Home) -> None:
    names = [name for name in EVERYDAY if overrides.keys() <= hyperparameters(name)][:2]
    made = {name: archspec.load(name, **overrides).count().table for name in names}
    for _ in range(2):
        for name in made:
            as_in_a_fresh_process()
            assert pipeline.tables.load_table(name, overrides)[0] == made[name]


def test_an_entry_is_believed_while_all_is_as_it_was(home: Home) -> None:
    """The forgery works: what follows shows that it is seen through, not that nothing is kept."""
    home.forge()
    assert home.total() == FALSE


def rewrite(path: Path) -> None:
    """Other contents of the same size, written at the same time."""
    status = path.stat()
    text = path.read_text()
    path.write_text(text.replace(" Linear", "\tLinear") if " Linear" in text else text.replace("  ", " \t"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


CHANGES: dict[str, Callable[[Home, pytest.MonkeyPatch], Any]] = {
    "the spec": lambda home, patch: rewrite(home.spec),
    "what it imports": lambda home, patch: rewrite(home.part),
    "the standard library": lambda home, patch: rewrite(home.specs / "std/linear.arch"),
    "its list of names": lambda home, patch: rewrite(home.specs / "std.arch"),
    "the package or Python": lambda home, patch: patch.setattr(cache, "_package_fingerprint", lambda: "another"),
    "who may write the entry": lambda home, patch: home.entries()[0].chmod(0o620),
    "that all may write the entry": lambda home, patch: home.entries()[0].chmod(0o602),
    "who may list the folder": lambda home, patch: home.cache.chmod(0o750),
    "that all may write the folder": lambda home, patch: home.cache.chmod(0o777),
    "who we are": lambda home, patch: patch.setattr(os, "geteuid", lambda: 12_345),
    "the place of the specs": lambda home, patch: patch.setattr(resources, "specs_root", lambda: str(ROOT / "specs")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_entry_is_not_believed_after_a_change_of(change: str, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.forge()
    CHANGES[change](home, monkeypatch)
    assert home.total() == TRUE


def test_an_entry_is_for_its_own_question_only(home: Home) -> None:
    home.forge()
    (path,) = home.entries()
    assert home.total(width=3) == 12
    other = next(p for p in home.entries() if p != path)
    shutil.copy(path, other)
    assert home.total(width=3) == 12
    assert pipeline.tables.load_table(f"{home.spec}:tiny", {})[0].params.total == TRUE
    assert [home.total(width=width) for width in (1, 2, 1)] == [2, TRUE, 2]
    assert home.total() == FALSE


def test_a_link_that_leads_elsewhere_is_a_change(home: Home) -> None:
    one, two = home.part.with_name("one.arch"), home.part.with_name("two.arch")
    home.part.rename(one)
    two.write_text(PART.replace("Linear(width, width)", "Linear(width, width, bias = false)"))
    home.part.symlink_to(one)
    shutil.rmtree(home.cache)
    assert home.total() == TRUE
    home.part.unlink()
    home.part.symlink_to(two)
    assert home.total() == 4
    assert archspec.load(str(home.spec)).params.total == 4


def test_an_entry_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache.write("some", "one", "text")
    (entry,) = (tmp_path / "archspec-dsl").iterdir()
    size = entry.stat().st_size
    monkeypatch.setattr(cache, "MAX_ENTRY_BYTES", size)
    cache.write("some", "two", "text")
    assert [cache.read("some", key) for key in ("one", "two", "three")] == ["text", "text", None]
    cache.write("some", "two", "texts")
    assert cache.read("some", "two") == "text"
    monkeypatch.setattr(cache, "MAX_ENTRY_BYTES", size - 1)
    assert cache.read("some", "one") is None


def test_files_that_are_gone_are_missed(home: Home) -> None:
    home.part.unlink()
    with pytest.raises(archspec.ArchError) as caught:
        home.total()
    assert [d.code for d in caught.value.diagnostics] == ["missing-file"]
    home.spec.unlink()
    with pytest.raises(archspec.ArchError):
        home.total()


def test_a_spec_that_became_something_else_is_no_longer_read(home: Home) -> None:
    home.spec.unlink()
    os.mkfifo(home.spec)
    with pytest.raises(archspec.ArchError) as caught:
        home.total()
    assert [d.code for d in caught.value.diagnostics] == ["unreadable"]


@pytest.mark.parametrize("kind", ["table", "tree"])
def test_damaged_entries_are_passed_over(kind: str, home: Home) -> None:
    for path in home.entries(kind):
        whole = path.read_bytes()
        damaged = [whole[:size] for size in range(0, len(whole), max(1, len(whole) // 25))]
        for place in range(0, len(whole), max(1, len(whole) // 25)):
            damaged.append(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        damaged += [whole + b"x", b"\n" + whole, whole[9:], b"\x80\x04K\x2a.", b"\xff" * 100]
        if kind == "tree":
            damaged = damaged[::7]
        for text in damaged:
            for table in home.entries() if kind == "tree" else ():
                table.unlink()
            path.write_bytes(text)
            assert home.total() == TRUE


@pytest.mark.parametrize("kind", ["table", "tree"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[" * 200_000,
        b'{"is":' * 50_000,
        b"9" * 10_000,
        b"NaN",
        b"null",
        b"[1,2",
        b'"\\ud800"',
        b'{"is":[],"is":1}',
    ],
    ids=lambda body: body[:6].decode(),
)
def test_hostile_json_is_passed_over(kind: str, body: bytes, home: Home) -> None:
    path = home.entries(kind)[0]
    write_text(path, body)
    for table in home.entries() if kind == "tree" else ():
        table.unlink()
    assert home.total() == TRUE


def test_without_a_place_for_it_nothing_is_kept_and_nothing_said(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "link")
    for place in (
        tmp_path / "file",
        tmp_path / "file" / "below",
        tmp_path / "link",
        Path("/proc/none"),
        Path("/dev/null"),
    ):
        monkeypatch.setenv("XDG_CACHE_HOME", str(place))
        as_in_a_fresh_process()
        assert main(["count", str(home.spec), "--format", "json"]) == 0
        out, err = capsys.readouterr()
        assert (json.loads(out)["params"]["total"], err) == (TRUE, "")


def test_without_a_home_nothing_is_kept(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.chdir(home.spec.parent)
    assert home.total() == TRUE
    assert {path.name for path in home.spec.parent.iterdir()} == {"spec.arch", "part.arch"}


def test_a_relative_cache_folder_is_not_one(home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert home.total() == TRUE
    assert not (tmp_path / "relative").exists()
    assert (tmp_path / "home" / ".cache" / "archspec-dsl").is_dir()


def test_a_link_to_a_private_folder_will_do_and_to_another_will_not(home: Home, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    home.cache.rename(elsewhere)
    home.cache.symlink_to(elsewhere)
    home.forge()
    assert home.total() == FALSE
    elsewhere.chmod(0o770)
    assert home.total() == TRUE


@pytest.mark.parametrize("call", ["open", "replace"])
def test_a_full_disk_is_done_without(call: str, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    shutil.rmtree(home.cache)
    monkeypatch.setattr(os, call, fail)
    assert home.total() == TRUE
    assert not list(home.cache.iterdir())


def test_room_is_made(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_ENTRIES", 10)
    for width in range(1, 40):
        assert home.total(width=width) == width * width + width
    assert len(list(home.cache.iterdir())) <= 10


def test_processes_at_once_do_not_disturb_each_other(home: Home) -> None:
    shutil.rmtree(home.cache)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "archspec", "count", str(home.spec), "--format", "json"]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) for _ in range(4)
    ]
    for process in running:
        out, err = process.communicate(timeout=60)
        assert (json.loads(out)["params"]["total"], err) == (TRUE, b"")
    for path in home.cache.iterdir():
        assert path.suffix == ".json"
        checksum, _, body = path.read_bytes().partition(b"\n")
        assert checksum == b"%08x" % crc32(body)


def test_an_edit_of_the_package_or_the_grammar_starts_afresh(tmp_path: Path) -> None:
    home = Home(tmp_path)
    package = tmp_path / "installed"
    for name in ("archspec", "grammars", "specs"):
        shutil.copytree(ROOT / name, package / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "archspec_dsl.py", package)
    environment = {**os.environ, "PYTHONPATH": str(package), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def total() -> int:
        command = [sys.executable, "-m", "archspec", "count", str(home.spec), "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, cwd=tmp_path)
        assert done.stderr == ""
        return json.loads(done.stdout)["params"]["total"]

    for changed in (package / "grammars/arch.lark", package / "archspec/ir/ops/linear.py"):
        assert total() == TRUE
        home.forge()
        assert total() == FALSE
        with changed.open("a") as file:
            file.write("\n# changed\n" if changed.suffix == ".py" else "\n// changed\n")
        assert total() == TRUE, changed
        shutil.rmtree(home.cache)


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
@pytest.mark.parametrize("grown", ["spec", "part", "entry"])
def test_files_that_have_grown_are_not_read_whole(tmp_path: Path, grown: str) -> None:
    home = Home(tmp_path)
    environment = {**os.environ, "XDG_CACHE_HOME": str(home.cache.parent), "PYTHONPATH": str(ROOT)}
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30)); "
    command = [
        sys.executable,
        "-c",
        limited + "from archspec.app.cli import main; sys.exit(main())",
        "count",
        str(home.spec),
    ]

    def count() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    assert count().returncode == 0
    (entry,) = home.cache.glob("table-*.json")
    path = {"spec": home.spec, "part": home.part, "entry": entry}[grown]
    os.truncate(path, 8 * 2**30)
    done = count()
    assert "Traceback" not in done.stderr
    if grown == "entry":
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert done.returncode == 1 and "exceeds the size limit of 256 KiB" in done.stderr
    path.unlink()


def test_a_file_with_warnings_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []

    def counted(unit: Unit, report: Report) -> None:
        checked.append(unit.source.label)
        check_file(unit, report)

    monkeypatch.setattr("archspec.compiler.elaborate.models.check_file", counted)
    spec = tmp_path / "spec.arch"
    spec.write_text(
        "import std { Linear, gelu }\ndim batch\n"
        "block Net(n = 4)(x [batch, n]) -> [batch, n] { return x |> a: Linear(n, n) }\n"
        'model "net" = Net()\nmodel "wide" = Net(n = 8)\n'
    )
    models = [archspec.load(f"{spec}:{name}", n=n) for name, n in (("net", 5), ("wide", 6), ("net", 5))]
    assert [[d.code for d in model.warnings] for model in models] == [["unused-import"]] * 3
    assert [d.code for d in testing.check(str(spec))] == ["unused-import"]
    assert len({id(get_compilation(model).unit) for model in models}) == 1
    assert checked == [str(spec)]
    spec.write_text(spec.read_text().replace(", gelu", ""))
    assert not archspec.load(f"{spec}:net").warnings
    spec.write_text(spec.read_text().replace("-> [batch, n] {", "-> [batch, n] { y = x"))
    for _ in range(2):
        with pytest.raises(archspec.ArchError, match="y"):
            archspec.load(f"{spec}:net")


def test_warnings_of_compilations_are_reported_each_time(tmp_path: Path) -> None:
    spec = tmp_path / "spec.arch"
    spec.write_text(
        "import std { Linear, gelu, silu }\ndim batch\n"
        "block Part(n)(x [batch, n]) -> [batch, n] { return x |> a: Linear(n, n) |> gelu }\n"
        "block Net(n = 4)(x [batch, n]) -> [batch, n] { return x |> l[i]: Part(n) for i in 0..3 }\n"
        'model "net" = Net()\n'
    )
    assert [[d.code for d in archspec.load(spec).warnings] for _ in range(3)] == [["unused-import", "no-residual"]] * 3


def test_packages_that_are_not_part_of_the_state_exist() -> None:
    package = Path(archspec.__file__).parent
    assert all((package / name / "__init__.py").is_file() for name in cache.EXCLUDED_PACKAGES)
