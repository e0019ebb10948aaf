"""Steps of the code that the tests of pytest plugin cannot reach through public names."""

from pathlib import Path
from typing import Any

import pytest
from test_pytest_plugin import SPEC

from archspec import ArchError
from archspec.app.pytest_plugin import SpecFile, SpecItem, pytest_collect_file


def items_of(request: pytest.FixtureRequest, path: Path) -> dict[str, SpecItem]:
    file = SpecFile.from_parent(request.session, path=path)
    items = list(file.collect())
    assert all(isinstance(item, SpecItem) and item.file is file for item in items)
    return {item.name: item for item in items if isinstance(item, SpecItem)}


def test_each_model_is_a_test(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    path = tmp_path / "scale.arch"
    path.write_text(SPEC)
    items = items_of(request, path)
    assert list(items) == ["check", "right", "wrong"]
    assert [item.reportinfo() for item in items.values()] == [
        (path, None, "check"),
        (path, 5, "right"),
        (path, 6, "wrong"),
    ]
    items["check"].runtest()
    items["right"].runtest()
    with pytest.raises(ArchError) as found:
        items["wrong"].runtest()
    assert [item.code for item in found.value.diagnostics] == ["expect"]
    assert items["wrong"].repr_failure(found) == str(found.value)
    with pytest.raises(ZeroDivisionError) as other:
        _ = 1 // 0
    assert "ZeroDivisionError: " in str(items["wrong"].repr_failure(other))


def test_errors_outside_of_models_are_those_of_the_file(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    path, other = tmp_path / "scale.arch", tmp_path / "other.arch"
    other.write_text(SPEC.replace("n = 2", "n = missing"))
    path.write_text('import "other.arch" { Scale }\nmodel "right" = Scale()\nmodel "wrong" = Missing()\n')
    items = items_of(request, path)
    for name in ("check", "wrong"):
        with pytest.raises(ArchError):
            items[name].runtest()
    with pytest.raises(pytest.skip.Exception, match=r"^the file has errors outside of models$"):
        items["right"].runtest()
    empty = tmp_path / "empty.arch"
    empty.write_bytes(b"\xff")
    assert list(items_of(request, empty)) == ["check"]


@pytest.mark.parametrize("way", ["option", "setting", "path"])
def test_files_are_collected_if_one_asks(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    asked: set[str] = set()
    path, session = tmp_path / "scale.arch", request.session

    def collected(path: Path) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(session.config, "getoption", lambda name: "option" in asked and name == "--archspec")
            patch.setattr(session.config, "getini", lambda name: "setting" in asked and name == "archspec")
            patch.setattr(session, "isinitpath", lambda path: "path" in asked)
            return pytest_collect_file(path, session)

    assert collected(path) is None
    asked.add(way)
    found = collected(path)
    assert isinstance(found, SpecFile) and found.path == path
    assert collected(tmp_path / "test_one.py") is None
