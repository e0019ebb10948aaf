"""What tests share: comparing with files under `tests/golden`, renewed by `pytest --update-golden`."""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import bundled
import pytest
from paths import GOLDEN

import archspec
from archspec.analysis.explain.explain import Explainer, create_explainer
from archspec.pipeline.index import bundled_models
from archspec.pipeline.model import get_compilation


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew from what is produced now")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, obj: object) -> list[pytest.Item] | None:
    """Do not list slow tests, which have thousands of cases, in the everyday suite."""
    markers = [*collector.iter_markers("slow"), *[m for m in getattr(obj, "pytestmark", ()) if m.name == "slow"]]
    is_everyday = collector.config.option.markexpr == "not slow" and "::" not in "".join(collector.config.args)
    return [] if markers and is_everyday and callable(obj) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests of further bundled models and further random configurations to `-m exhaustive`, and all but some
    cases of `sampled` tests to `-m slow`, or to `-m exhaustive` if the test is slow, unless `-k` chooses, or all golden
    files are renewed.
    """
    models = frozenset(archspec.models()) - bundled.SLOW
    files = {file for file, _ in bundled_models()} - {file for file, name in bundled_models() if name in bundled.SLOW}
    for item in items:
        params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        named = any(isinstance(value, str) and value in models for value in params.values())
        stem = Path(str(params.get("path", params.get("spec", "")))).stem
        if item.get_closest_marker("slow") and (named or stem in files):
            item.add_marker("exhaustive")
    if not config.option.keyword and not config.option.update_golden:
        leave_some(items)
    if "exhaustive" in config.option.markexpr:
        return
    left = [item for item in items if item.get_closest_marker("exhaustive")]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]


def leave_some(items: list[pytest.Item]) -> None:
    """Mark the cases of tests that are `sampled(count)` as slow, or as exhaustive if they are slow, except for COUNT at
    equal distances.
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("exhaustive"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for group in cases.values():
        marker = group[0].get_closest_marker("sampled")
        count = marker.args[0] if marker else len(group)
        everyday = {number * len(group) // count for number in range(count)}
        for number, item in enumerate(group):
            if number not in everyday:
                item.add_marker("exhaustive" if item.get_closest_marker("slow") else "slow")


def pytest_configure(config: pytest.Config) -> None:
    """Search for garbage seldom: what a test has compiled is mostly there until its end.

    In the everyday suite, whose garbage takes less than a gigabyte, hardly ever. That of slow tests may be weights.
    """
    gc.set_threshold(20_000_000 if config.option.markexpr == "not slow" else 1_000_000, 20, 20)


def pytest_collection_finish() -> None:
    """Never search among the tests."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """Search for no garbage at the end. pytest does it five times, for longer than a worker is waited for."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def cache_of_their_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither see nor fill the caches of whoever runs them, use no network, and depend on no terminal's width."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("COLUMNS", "100")
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("hub")))
        patch.setenv("HF_HUB_OFFLINE", "1")
        if sys.dont_write_bytecode:  # processes need not compile the package one by one
            own = tmp_path_factory.getbasetemp()
            shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
            patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
            patch.setenv("PYTHONPYCACHEPREFIX", str(shared / "bytecode"))
        yield


@pytest.fixture(scope="session", autouse=True)
def bundled_models_compiled_once() -> Iterator[None]:
    """Files that many tests use stay compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("archspec.pipeline.files.MAX_PROGRAMS", 64)
        yield


@pytest.fixture(scope="module")
def explainers_made_once() -> Iterator[None]:
    """Models that are explained several times have one explainer, whose conventions are found once."""
    made: dict[object, Explainer] = {}

    def once(model: archspec.Model) -> Explainer:
        key = get_compilation(model).body, model.name, repr(model.overrides)
        if key not in made:
            made[key] = create_explainer(model)
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("archspec.analysis.explain.explain.create_explainer", once)
        patch.setattr("archspec.analysis.audit.models.create_explainer", once)
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with the golden file of a name."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare
