"""Installation beside the unrelated project `archspec` of PyPI, which has a package and a command of the same names."""

import os
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Callable
from pathlib import Path

import pytest
from paths import ROOT

import archspec

OTHER = "archspec-0.2.5"
COUNT = ("count", "bert-base-uncased", "--depth", "0")
WAYS_OUT = ("python3 -m venv ENV && ENV/bin/pip install archspec-dsl", "uv tool install archspec-dsl")


def run(*command: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | env
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/", timeout=300)


def command(folder: Path, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command that is installed in a folder, as its script does."""
    program = "import sys; from archspec_dsl import run; sys.argv[0] = 'archspec'; run()"
    return run(sys.executable, "-P", "-c", program, *arguments, PYTHONPATH=f"{path}{os.pathsep}{folder}")


def assert_explains(result: subprocess.CompletedProcess[str], *parts: str) -> None:
    """Assert that a command printed the three lines and nothing else."""
    assert (result.returncode, result.stdout) == (2, "")
    lines = result.stderr.splitlines()
    assert len(lines) == 3 and lines[0].startswith("archspec: ")
    assert all(part in lines[0] for part in parts), lines[0]
    assert all(way in line for way, line in zip(WAYS_OUT, lines[1:], strict=True))
    assert "`pipx install archspec-dsl`" in lines[2]


@pytest.fixture
def installed(unpacked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(unpacked, tmp_path / "site-packages"))


def add_metadata(folder: Path) -> None:
    (folder / f"{OTHER}.dist-info").mkdir()


def install_other_over(folder: Path) -> None:
    add_metadata(folder)
    (folder / "archspec" / "__init__.py").write_text('__version__ = "0.2.5"\n')
    (folder / "archspec" / "__main__.py").write_text("from archspec.cli import main\n")
    (folder / "archspec" / "cli.py").write_text("def main(): ...\n")


def remove_other(folder: Path) -> None:
    (folder / "archspec" / "__init__.py").unlink()
    (folder / "archspec" / "__main__.py").unlink()


def overwrite_module(folder: Path) -> None:
    add_metadata(folder)
    (folder / "archspec" / "analysis" / "count" / "count.py").write_text("COUNT = 1\n")


def remove_module(folder: Path) -> None:
    (folder / "archspec" / "app" / "cli" / "commands.py").unlink()


def leave_old_metadata(folder: Path) -> None:
    (folder / f"archspec_dsl-{archspec.__version__}.dist-info").rename(folder / "archspec_dsl-0.0.9.dist-info")


BOTH = f"archspec-dsl {archspec.__version__} and the unrelated archspec 0.2.5 overwrite each other's files in "
DAMAGED = f"cannot run archspec-dsl {archspec.__version__} in "


@pytest.mark.parametrize(
    "damage, parts",
    [
        (install_other_over, (BOTH, "archspec/__init__.py is not that of archspec-dsl")),
        (overwrite_module, (BOTH, "archspec/analysis/count/count.py was changed")),
        (remove_other, (DAMAGED, "archspec/__init__.py is missing, as after")),
        (remove_module, (DAMAGED, "archspec/app/cli/commands.py is missing")),
        (leave_old_metadata, ("archspec-dsl 0.0.9", "archspec/__init__.py has a different version")),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_mixture_is_explained_and_not_run(
    installed: Path, damage: Callable[[Path], None], parts: tuple[str, ...]
) -> None:
    damage(installed)
    result = command(installed, *COUNT)
    if damage is overwrite_module:  # the package itself is ours, and warns when it is imported
        shown = result.stderr.splitlines(keepends=True)
        result.stderr = "".join(shown[-3:])
    assert_explains(result, str(installed), *parts)


def test_a_package_that_hides_ours_is_not_run(installed: Path, tmp_path: Path) -> None:
    hiding = tmp_path / "hiding"
    (hiding / "archspec").mkdir(parents=True)
    (hiding / "archspec" / "__init__.py").write_text("")
    assert_explains(command(installed, *COUNT, path=str(hiding)), f"Python imports {hiding}", " instead")


def test_a_complete_package_beside_the_other_metadata_warns_once(installed: Path) -> None:
    assert command(installed, *COUNT).stderr == ""
    add_metadata(installed)
    program = "import archspec, archspec.core, archspec_dsl; print(archspec_dsl.conflict_text())"
    result = run(sys.executable, "-P", "-c", program, PYTHONPATH=str(installed))
    assert len(result.stdout.splitlines()) == 3 and BOTH in result.stdout
    assert result.stderr.count("UserWarning") == 1
    assert f"UserWarning: {result.stdout}" in result.stderr
    counted = command(installed, *COUNT)
    assert counted.returncode == 0 and "109,482,240" in counted.stdout and BOTH in counted.stderr


def test_the_version_names_the_distribution_and_its_place(installed: Path) -> None:
    result = command(installed, "--version")
    assert result.stdout == f"archspec-dsl {archspec.__version__} from {installed / 'archspec'}\n"


def test_both_commands_check_first() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"archspec": "archspec_dsl:run", "archspec-dsl": "archspec_dsl:run"}


# With pip and the real other project ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def other_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("other")
    download = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, OTHER.replace("-", "=="))
    if run(*download).returncode:
        pytest.skip("no package index")
    (file,) = folder.glob("*.whl")
    return file


def environment(folder: Path, *wheels: Path) -> Path:
    """Create an environment, install the wheels in this order, and return the folder of its commands."""
    venv.create(folder, with_pip=True)
    commands = folder / ("Scripts" if os.name == "nt" else "bin")
    for file in wheels:
        result = run(commands / "pip", "install", "-q", file)
        assert result.returncode == 0, result.stderr
    return commands


@pytest.mark.slow
def test_the_other_project_installed_over_ours(wheel: Path, other_wheel: Path, tmp_path: Path) -> None:
    commands = environment(tmp_path, wheel, other_wheel)
    assert_explains(run(commands / "archspec-dsl", *COUNT), BOTH, "archspec/__init__.py is not that of archspec-dsl")
    assert "0.2.5" in run(commands / "archspec", "--version").stdout  # the other project's, and complete
    assert run(commands / "archspec", "cpu").returncode == 0
    run(commands / "pip", "uninstall", "-qy", "archspec")
    assert_explains(run(commands / "archspec-dsl", *COUNT), DAMAGED, "archspec/__init__.py is missing")
    assert run(commands / "pip", "install", "-q", "--force-reinstall", "--no-deps", wheel).returncode == 0
    for name in ("archspec", "archspec-dsl"):
        result = run(commands / name, *COUNT)
        assert (result.returncode, result.stderr) == (0, "") and "109,482,240" in result.stdout


@pytest.mark.slow
def test_ours_installed_over_the_other_project(wheel: Path, other_wheel: Path, tmp_path: Path) -> None:
    commands = environment(tmp_path, other_wheel, wheel)
    for name in ("archspec", "archspec-dsl"):
        result = run(commands / name, *COUNT)
        assert result.returncode == 0 and "109,482,240" in result.stdout and BOTH in result.stderr
    assert run(commands / "python", "-c", "import archspec").stderr.count("UserWarning") == 1
    run(commands / "pip", "uninstall", "-qy", "archspec")
    assert_explains(run(commands / "archspec-dsl", *COUNT), DAMAGED, "archspec/__init__.py is missing")
