"""What a compilation counts, against each resource limit: a limit of as much is enough, and of one less is not."""

from types import ModuleType

import pytest
from paths import read_spec
from small import load

from archspec import ArchError
from archspec.compiler.evaluate import interpreter, limits
from archspec.compiler.resolve import expressions, files

SPEC = read_spec("limits_spec")
LISTS = """
layer Net(sizes = [[1, 2], [3, [4]]])(x [4]) -> [4] {
  w: param [sizes[1][0]]
  return x * sum(axis = 0)(.w)
}
"""
HEADS = """
layer Net(..Second, a = 1, c = 3)(x [4]) -> [4] {
  w: param [c]
  return x * sum(axis = 0)(.w) * a * b
}
layer Second(..First)(x [4]) -> [4] { return x * a * b }
layer First(a, b = 2)(x [4]) -> [4] { return x * a * b }
model "it" = Net()
"""
COUNTED = {
    "MAX_ITERATIONS": (5, "too many loop iterations: the limit is 4"),
    "MAX_INSTANCES": (4, "too many distinct instances of definitions: the limit is 3"),  # 3 modules and 5 bodies
    "MAX_PROCESSED_CHARACTERS": (6032, "too much text to process: the limit is 6,031 characters, repetitions included"),
    "MAX_UNUSED": (1, "too many unused tensors: 1 exceeds the limit of 0"),
    "MAX_TENSORS": (6, "too many tensors: 6 exceeds the limit of 5"),
    "MAX_CHARACTERS": (75, "tensor names are too long in total: 75 characters exceed the limit of 74"),
    "MAX_OPERATIONS": (12, "too many operations: 12 exceeds the limit of 11"),
    "MAX_SYMBOLIC_OPERATIONS": (1, "too many operations on symbolic sizes: the limit is 0"),
    "MAX_NESTED_DEFINITIONS": (3, "definitions are nested too deeply: the limit is 2 levels"),
}


OTHERS: dict[str, tuple[ModuleType, str, int, str]] = {
    "MAX_SEGMENTS": (expressions, SPEC, 2, "address too long: the limit is 1 segments and 500 characters"),
    "MAX_ADDRESS_LENGTH": (expressions, SPEC, 10, "address too long: the limit is 64 segments and 9 characters"),
    "MAX_LIST_LENGTH": (interpreter, LISTS, 7, "list too long: the limit is 6 items, inner lists included"),
    "MAX_HYPERPARAMETERS": (files, HEADS, 3, "too many hyperparameters in `Net`: the limit is 2"),
    "MAX_INHERITANCE_DEPTH": (files, HEADS, 2, "a signature is inherited through too many definitions: the limit is 1"),
}


def compiles_up_to(
    module: ModuleType, name: str, spec: str, count: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, count)
    load(spec)
    monkeypatch.setattr(module, name, count - 1)
    with pytest.raises(ArchError) as found:
        load(spec)
    assert ("budget", message) in [(error.code, error.message) for error in found.value.diagnostics]


@pytest.mark.parametrize("name", COUNTED)
def test_a_limit_of_what_is_counted_is_enough(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiles_up_to(limits, name, SPEC, *COUNTED[name], monkeypatch)


@pytest.mark.parametrize("name", OTHERS)
def test_a_limit_of_what_a_file_has_is_enough(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, spec, count, message = OTHERS[name]
    compiles_up_to(module, name, spec, count, message, monkeypatch)
