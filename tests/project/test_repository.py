"""The files that people and GitHub look for: links, parts of `.ci/run` in workflows, and what is promised of both."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from paths import ROOT

PAGES = [ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")]
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github" / "workflows").glob("*.yml")}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def steps(workflow: str) -> list[dict[str, Any]]:
    return [step for job in WORKFLOWS[workflow]["jobs"].values() for step in job.get("steps", ())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        path, _, anchor = target.partition("#")
        if not path.startswith("http"):
            headings = re.findall(r"^#+ (.*)$", (ROOT / path).read_text(), re.MULTILINE) if anchor else []
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert (ROOT / path).exists() and (not anchor or anchor in slugs), target


def test_contributing_is_short_and_names_what_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert len(text.splitlines()) <= 100
    named = re.findall(r"`((?:archspec|specs|tests|grammars|editors|website|action)/[\w./-]*)`", text)
    assert named and not [path for path in named if "FAMILY" not in path and not (ROOT / path).exists()]
    assert {f"archspec/{path.parent.name}/" for path in (ROOT / "archspec").glob("*/__init__.py")} <= set(named)


def test_workflows_call_parts_of_the_one_script() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    parts = set(re.findall(r"^(\w+)\(\) \{", script, re.MULTILINE))
    matrix = WORKFLOWS["tests"]["jobs"]["checks"]["strategy"]["matrix"]["parts"]
    calls = [str(step.get("run", "")) for name in WORKFLOWS for step in steps(name)]
    named = {word for call in [*calls, *matrix] for word in call.removeprefix(".ci/run").split() if word.isalpha()}
    assert {"tests", "lint", "package", "types", "slow", "docs", "release"} == named <= parts
    assert all(call == "" or call.startswith(".ci/run ") for call in calls)
    # Without arguments, everything is run in this order.
    assert script.endswith("\ntests\nlint\npackage\ntypes\nslow\n\nstep 'all of it holds'\n")


def test_three_python_versions_on_three_systems_are_tested() -> None:
    matrix = WORKFLOWS["tests"]["jobs"]["tests"]["strategy"]["matrix"]
    assert len(matrix["system"]) == len(matrix["python"]) == 3
    tested = {
        *matrix["python"],
        *(step["with"]["python-version"] for step in steps("docs") if "setup-python" in str(step)),
    }
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert tested == set(classified) and f">={matrix['python'][0]}" == PROJECT["requires-python"]


def test_releases_use_trusted_publishing() -> None:
    publish = WORKFLOWS["release"]["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"} and set(publish["needs"]) == {"tests", "build"}
    (upload,) = [step for step in publish["steps"] if "pypi-publish" in step["uses"]]
    assert "with" not in upload  # no password
    assert all(workflow["permissions"]["contents"] == "read" for workflow in WORKFLOWS.values())


def test_the_action_is_tried() -> None:
    (trial,) = [step for step in steps("action") if step.get("uses") == "./"]
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    assert trial["with"].keys() <= inputs.keys() and (ROOT / trial["with"]["paths"]).is_dir()


def test_the_addresses_are_those_of_one_repository() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    home = PROJECT["urls"]["Repository"]
    assert citation["repository-code"] == home and citation["license"] == PROJECT["license"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in PROJECT["authors"]]
    assert "Changelog" in PROJECT["urls"]
    texts = [(ROOT / name).read_text() for name in ("README.md", "docs/projects.md", "pyproject.toml")]
    assert set(re.findall(r"https://github\.com/[\w-]+/[\w-]+", "".join(texts))) == {home}
