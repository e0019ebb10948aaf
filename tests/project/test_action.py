"""The GitHub Action: what its scripts say of the revisions of a repository."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from paths import ROOT

SPEC = """import std {{ Linear }}
import "parts/more.arch" {{ twice }}

dim batch

block Net(n = 4, bias = true)(x [batch, n]) -> [batch, n] {{
  return x
    |> dense: Linear(n, {size}, bias)
    |> twice
}}

model "net"   = Net()
model "other" = Net(n = {other}, bias = false)
"""
MORE = "fn twice(x [...]) -> [...] {\n  return x * 2.0\n}\n"


def git(folder: Path, *arguments: str) -> None:
    settings = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True, timeout=60)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of two revisions: the spec, and then `base`'s spec with another model renamed, added, broken."""
    folder = tmp_path / "repository"
    (folder / "specs" / "parts").mkdir(parents=True)
    git(tmp_path, "init", "--quiet", str(folder))
    (folder / "specs" / "net.arch").write_text(SPEC.format(size="n", other=2))
    (folder / "specs" / "parts" / "more.arch").write_text(MORE)
    (folder / "specs" / "same.arch").write_text(SPEC.format(size="n", other=3))
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    git(folder, "tag", "base")
    return folder


def changes(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(ROOT / "action" / "changes.py"), *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit_changes(folder: Path) -> None:
    text = SPEC.format(size="n", other=3).replace("Net(n = 4,", "Net(n = 5,")
    (folder / "specs" / "net.arch").write_text(text.replace('"other"', '"a|b"') + 'model "broken" = Net(m = 1)\n')
    git(folder, "commit", "--quiet", "--all", "-m", "second")


def test_without_changes_there_is_no_report(repository: Path) -> None:
    (repository / "note.txt").touch()
    assert changes(repository, "--base", "base") == ""


def test_changes_of_counts(repository: Path) -> None:
    commit_changes(repository)
    table, _, details = changes(repository, "--base", "base").partition("\n\n<details>")
    assert table.splitlines() == [
        "<!-- archspec -->",
        "### Parameter counts",
        "",
        "| File | Model | Before | After | Change |",
        "|---|---|--:|--:|--:|",
        "| specs/net.arch | a\\|b |  | error: unknown hyperparameter `m` in call to `Net` | new |",
        "| specs/net.arch | broken |  | error: unknown hyperparameter `m` in call to `Net` | new |",
        "| specs/net.arch | net | 20 | error: unknown hyperparameter `m` in call to `Net` |  |",
        "| specs/net.arch | other | 4 |  | removed |",
    ]
    assert not details


def test_differences_are_listed(repository: Path) -> None:
    path = repository / "specs" / "net.arch"
    path.write_text(path.read_text().replace("Net(n = 4,", "Net(n = 5,"))
    git(repository, "commit", "--quiet", "--all", "-m", "second")
    report = changes(repository, "--base", "base")
    assert "| specs/net.arch | net | 20 | 30 | +10 (+50.00%) |" in report
    assert "<details><summary>net</summary>" in report
    assert "dense.weight" in report
    assert str(repository.parent) not in report
    assert "/tmp" not in report
    assert changes(repository / "specs", "--base", "base") == report
    assert changes(repository, "--base", "base", "specs/same.arch", "specs/parts") == ""


@pytest.mark.skipif(os.name == "nt", reason="a script of bash")
@pytest.mark.parametrize(
    ("existing", "method"), [("", "POST repos/me/it/issues/7/comments"), ("12", "PATCH repos/me/it/issues/comments/12")]
)
def test_the_comment(repository: Path, tmp_path: Path, existing: str, method: str) -> None:
    path = repository / "specs" / "net.arch"
    path.write_text(path.read_text().replace("Net(n = 4,", "Net(n = 5,"))
    git(repository, "commit", "--quiet", "--all", "-m", "second")
    programs = tmp_path / "programs"
    programs.mkdir()
    fake = programs / "gh"
    fake.write_text(
        '#!/bin/sh\nif [ "$2" = --paginate ]; then echo "$EXISTING"; exit; fi\n'
        f'echo "$3 $4" > {tmp_path}/called; cp "${{6#body=@}}" {tmp_path}/body\n'
    )
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "EXISTING": existing,
        **{"PATHS": "specs", "BASE": "base", "COMMENT": "true", "NUMBER": "7", "GITHUB_REPOSITORY": "me/it"},
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    command = ["bash", str(ROOT / "action" / "comment.sh"), sys.executable]
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "called").read_text() == f"{method}\n"
    assert "| net | 20 | 30 |" in (tmp_path / "body").read_text()
    assert (tmp_path / "summary").read_text() == (tmp_path / "body").read_text()


def test_the_files_for_other_tools() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    for step in action["runs"]["steps"]:
        assert "uses" in step or step["shell"] == "bash"
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in hooks] == ["archspec-check", "archspec-fmt"]
    assert all(hook["entry"] == hook["id"].replace("-", " ") for hook in hooks)
