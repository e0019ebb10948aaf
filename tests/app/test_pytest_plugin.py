"""The plugin of pytest: in processes of their own, and in this one, what it collects and reports."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from paths import ROOT

SPEC = """dim batch
layer Scale(n = 2)(x [batch, n]) -> [batch, n] {
  weight: param [n]
  return x * .weight
}
model "right" = Scale() { expect params == 2 }
model "wrong" = Scale() {
  expect params == 3
}
"""


def pytest_in(folder: Path, *arguments: str) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "archspec.app.pytest_plugin", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout


def test_files_are_collected_only_on_request(tmp_path: Path) -> None:
    (tmp_path / "scale.arch").write_text(SPEC)
    (tmp_path / "test_one.py").write_text("def test_one(): pass\n")
    status, out = pytest_in(tmp_path, "-q", "test_one.py", ".")
    assert (status, out.splitlines()[-1].split(" in ")[0]) == (0, "1 passed")
    status, out = pytest_in(tmp_path, "-q", "scale.arch::right")
    assert (status, out.splitlines()[-1].split(" in ")[0]) == (0, "1 passed")
    (tmp_path / "pytest.ini").write_text("[pytest]\narchspec = true\n")
    status, out = pytest_in(tmp_path, "-q")
    assert (status, out.splitlines()[-1].split(" in ")[0]) == (1, "1 failed, 3 passed")


def test_failures_are_diagnostics(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "scale.arch").write_text(f"{SPEC}dim seq,,\n")
    (tmp_path / "parts" / "other.arch").write_text('import "../scale.arch" { Scale }\nmodel "other" = Scale()\n')
    (tmp_path / "scale.arch").write_text(SPEC)
    (tmp_path / "not_text.arch").write_bytes(b"\xff")
    status, out = pytest_in(tmp_path, "--archspec", "-v", "-p", "no:randomly")
    assert status == 1
    assert "Traceback" not in out
    assert 'error[expect]: "wrong": expected params == 3, found 2 (1 fewer)' in out
    assert f" --> {tmp_path}/scale.arch:8:10" in out
    results = {line.split()[0]: line.split()[1] for line in out.splitlines() if "%]" in line}
    assert results == {
        "not_text.arch::check": "FAILED",
        "parts/other.arch::check": "PASSED",
        "parts/other.arch::other": "PASSED",
        "parts/scale.arch::check": "FAILED",
        "parts/scale.arch::right": "SKIPPED",
        "parts/scale.arch::wrong": "SKIPPED",
        "scale.arch::check": "PASSED",
        "scale.arch::right": "PASSED",
        "scale.arch::wrong": "FAILED",
    }


def test_it_is_registered() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"archspec": "archspec.app.pytest_plugin"}
