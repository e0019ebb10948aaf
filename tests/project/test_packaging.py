"""What is imported when, what is shipped, and that it works where it lands."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from paths import ROOT

import archspec

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HEAVY = {"lark", "networkx", "rich", "yaml", "dataclasses", "pathlib", "importlib.metadata", "inspect", "hypothesis"}


def modules_after(code: str, **env: str) -> set[str]:
    """Modules in memory after running `code` in a fresh interpreter, without those that every interpreter has."""
    show = "\nimport sys; sys.stderr.write(' '.join(sys.modules))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **env}

    def run(text: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-c", text + show], capture_output=True, text=True, env=environment, check=True, timeout=60
        )
        return set(done.stderr.split())

    return run(code) - run("")


def test_importing_the_package_imports_nothing_else() -> None:
    assert modules_after("import archspec") <= {"archspec", "__future__"}


def test_a_warm_count_imports_only_what_it_needs(tmp_path: Path) -> None:
    count = "from archspec.app.cli import main\nassert main(['count', 'bert-base-uncased', '--format', 'json']) == 0"
    modules_after(count, XDG_CACHE_HOME=str(tmp_path))
    warm = modules_after(count, XDG_CACHE_HOME=str(tmp_path))
    assert not warm & HEAVY
    assert not {
        name
        for name in warm
        if name.startswith(("archspec.compiler.elaborate", "archspec.language.syntax", "archspec.ir.ops"))
    }


def test_what_is_exported_is_there() -> None:
    assert set(archspec.__all__) <= set(dir(archspec))
    for name in archspec.__all__:
        assert getattr(archspec, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = archspec.nothing  # type: ignore[attr-defined]


def test_there_is_one_version_and_one_entry_of_the_changelog_for_each_release() -> None:
    pattern = r"^## ((\d+)\.(\d+)\.(\d+)) \((?:unreleased|\d{4}-\d{2}-\d{2})\)$"
    changelog = (ROOT / "CHANGELOG.md").read_text()
    entries = re.findall(pattern, changelog, re.MULTILINE)
    assert len(entries) == changelog.count("\n## ") and entries[0][0] == archspec.__version__
    numbers = [tuple(map(int, parts)) for _, *parts in entries]
    assert numbers == sorted(set(numbers), reverse=True)
    assert set(re.findall(r"v(\d+\.\d+\.\d+)", (ROOT / "docs" / "projects.md").read_text())) == {archspec.__version__}


def test_the_source_distribution_is_small_and_has_what_the_wheel_is_built_from(unpacked: Path, tmp_path: Path) -> None:
    from hatchling.builders.sdist import SdistBuilder

    (built,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    assert Path(built).stat().st_size < 2_500_000
    with tarfile.open(built) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    packed = (str(path.relative_to(unpacked)) for path in unpacked.rglob("*.*") if path.is_file())
    sources = {re.sub("^archspec/(specs|grammars|docs)/", r"\1/", name) for name in packed if "dist-info" not in name}
    assert sources - {"archspec/language/syntax/parser_tables.json"} <= inside
    assert {"README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "hatch_build.py"} <= inside
    assert not {name for name in inside if name.startswith("tests/")}


def test_only_what_a_count_needs_is_installed(tmp_path: Path) -> None:
    config = ROOT / "tests" / "data" / "configs" / "bert-base-uncased-mlm.json"
    counts = [["bert-base-uncased"], [str(config)], ["bert-base-uncased", "--format", "yaml"]]
    runs = "\n".join(f"assert main(['count', *{arguments!r}]) == 0" for arguments in counts)
    imported = modules_after(f"from archspec.app.cli import main\n{runs}", XDG_CACHE_HOME=str(tmp_path))
    packages = packages_distributions().keys() & {name.partition(".")[0] for name in imported}
    assert packages - {"archspec", "archspec_dsl", "_yaml"} == {"yaml"}
    assert [re.match(r"[\w.-]+", line)[0] for line in PROJECT["project"]["dependencies"]] == ["PyYAML"]


def test_links_and_pictures_of_the_readme_are_absolute_on_the_package_index(unpacked: Path) -> None:
    (metadata,) = unpacked.glob("*.dist-info/METADATA")
    text = metadata.read_text().partition("\n\n")[2]
    readme = (ROOT / "README.md").read_text()
    link = re.compile(r'\]\(([^)]+)\)|src="([^"]+)"')
    targets = [first or second for first, second in link.findall(text)]
    home = PROJECT["project"]["urls"]["Repository"]
    raw = home.replace("github.com", "raw.githubusercontent.com")
    prefixes = (f"{home}/blob/v{archspec.__version__}/", f"{raw}/v{archspec.__version__}/", "#")
    assert len(targets) > 20 and all(target.startswith((*prefixes, "http")) for target in targets)
    assert link.sub("", text) == link.sub("", readme)
    for target in targets:
        for prefix in prefixes[:2]:
            path = target.removeprefix(prefix).partition("#")[0]
            assert path.startswith(("http", "#")) or (ROOT / path).exists(), target


def test_the_readmes_test_command_is_the_one_that_ci_runs() -> None:
    command = re.search(r"^.* -m pytest -q -n auto$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert command and f"\n{command[0].strip()}\n" in (ROOT / "README.md").read_text()


def test_the_wheel_has_grammar_specs_and_errors_and_nothing_beside_the_package(unpacked: Path) -> None:
    assert {path.name for path in unpacked.iterdir()} == {
        "archspec",
        "archspec_dsl.py",
        f"archspec_dsl-{archspec.__version__}.dist-info",
    }
    inside = {
        str(path.relative_to(unpacked / "archspec")) for path in (unpacked / "archspec").rglob("*") if path.is_file()
    }
    ours = {str(path.relative_to(ROOT)) for path in (*ROOT.glob("specs/**/*.*"), *ROOT.glob("grammars/*.lark"))}
    assert ours | {"docs/errors.md", "py.typed", "__main__.py"} <= inside
    inside -= {"app/pytest_plugin.py", "testing.py"}
    assert not [name for name in inside if "test" in name or (name.startswith("docs/") and name != "docs/errors.md")]


def test_the_wheel_works_where_nothing_else_is(unpacked: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(unpacked), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    check = "import archspec, sys; assert archspec.__file__.startswith(sys.argv[1]), archspec.__file__"
    subprocess.run([sys.executable, "-c", check, str(unpacked)], env=environment, cwd=tmp_path, check=True, timeout=60)
    for arguments in (
        ["count", "bert-base-uncased"],
        ["error"],
        ["show", "albert-base-v2"],
        ["audit", "bert-base-chinese"],
    ):
        command = [sys.executable, "-m", "archspec", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), arguments
        assert "109,482,240" in done.stdout or arguments[0] != "count"
