"""Lifting: each case of `cases/NAME.py` becomes the spec in `cases/NAME.arch`, which computes what the module does.

A case file has one or more of these tables, by what a case shows:

- `CASES`: a function that builds a module, or its class, and inputs: a tuple, or a dictionary by argument. The spec
  must also compute the same for further inputs, if there are any.
- `FUNCTIONS`: a function of tensors, and its inputs; it becomes a module.
- `SOURCES`: a source of `archspec lift`, and its inputs. `:NAME` is a function in the file, a dictionary is written as
  a `config.json`, and a class with a dictionary becomes one of `transformers` with a `config.json`.
  With the values of a last dictionary, the spec must be equivalent to what the function builds with them.

`SLOW` is a pattern of cases that run with `-m slow`. `ROUNDED` names functions with tables in float32. A refusal is
written in the place of a spec.
`pytest tests/pytorch/lift/test_lift_cases.py --update-golden` renews the specs.
"""

import importlib.util
import inspect
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from modules_of_files import verify
from sections import compare_section, read_sections

torch = pytest.importorskip("torch")

import archspec
from archspec import testing

CASES = Path(__file__).parent / "cases"
TABLES = ("CASES", "FUNCTIONS", "SOURCES")


def build_function(function: Any) -> Any:
    """Return a module that applies a function, whose inputs have the names of its parameters."""
    code = getattr(function, "__code__", None)
    names = ", ".join(code.co_varnames[: code.co_argcount]) if code else "x"
    namespace: dict[str, Any] = {}
    exec(f"def forward(self, {names}): return self.function({names})", namespace)
    return type("Function", (torch.nn.Module,), {"forward": namespace["forward"], "function": staticmethod(function)})()


@cache
def load_cases(name: str) -> Any:
    """Return the module of a case file."""
    spec = importlib.util.spec_from_file_location(f"lift_cases_{name}", CASES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    torch.manual_seed(0)
    spec.loader.exec_module(module)
    return module


def case_names(module: Any) -> list[str]:
    return [case for table in TABLES for case in getattr(module, table, {})]


def parameters() -> Iterator[Any]:
    for path in sorted(CASES.glob("*.py")):
        module = load_cases(path.stem)
        assert len({*case_names(module)}) == len(case_names(module)), path
        for table in TABLES:
            for case in getattr(module, table, {}):
                slow = [pytest.mark.slow] if re.match(getattr(module, "SLOW", "$"), case) else []
                yield pytest.param(path.stem, table, case, id=f"{path.stem}: {case}", marks=slow)


@pytest.fixture(autouse=True)
def without_fast_path() -> Iterator[None]:
    """Encoders without the fused kernel that PyTorch uses for them in evaluation mode."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    yield
    torch.backends.mha.set_fastpath_enabled(enabled)


@pytest.mark.sampled(40)
@pytest.mark.parametrize(("file", "table", "case"), [*parameters()])
def test_a_case_is_lifted(file: str, table: str, case: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    module = load_cases(file)
    torch.manual_seed(0)
    make, *inputs = getattr(module, table)[case]
    text = lift_source(file, make, inputs, tmp_path) if table == "SOURCES" else lift_module(table, make, inputs)
    update = request.config.getoption("--update-golden")
    compare_section(CASES / f"{file}.arch", case, text, case_names(module), update)


def lift_module(table: str, make: Any, inputs: Any) -> str:
    """Return the spec of a module, if the module that it is built into computes the same; or why it is refused."""
    module = (build_function(make) if table == "FUNCTIONS" else make()).eval()
    examples = inputs if table == "CASES" else [tuple(inputs)]
    try:
        text = archspec.lift(module, examples[0])
    except archspec.ArchError as error:
        return describe(error.diagnostics[0])
    model = archspec.loads(text)
    built = archspec.to_torch(model).eval()
    built.load_state_dict(module.state_dict())
    for example in examples:
        names = inspect.signature(module.forward).parameters
        named = example if isinstance(example, dict) else dict(zip(names, example, strict=False))
        used = {name: value for name, value in named.items() if name in model.inputs}
        with torch.no_grad():
            expected = tensors(module(**example) if isinstance(example, dict) else module(*example))
            actual = tensors(built(**used) if isinstance(example, dict) else built(*used.values()))
        for left, right in zip(expected, actual, strict=True):
            torch.testing.assert_close(right, left, rtol=1e-4, atol=1e-5, equal_nan=True, check_dtype=False)
    return text


def lift_source(file: str, source: Any, arguments: list[Any], folder: Path) -> str:
    """Return what `archspec lift` prints for a source, if the spec is right; or why it is refused."""
    if isinstance(source, type):
        source = register(source) | arguments.pop(0)
    values: dict[str, Any] = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
    if isinstance(source, dict):
        pytest.importorskip("transformers")
        path = str(folder / "config.json")
        Path(path).write_text(json.dumps(source), encoding="utf-8")
    else:
        path = f"{CASES / file}.py{source}"
    result = testing.run("lift", path, *[f"--input={text}" for text in arguments])
    errors = result.errors.replace(str(CASES), "cases").replace(str(folder), "FOLDER")
    notes = "".join(f"# {line}".rstrip() + "\n" for line in errors.splitlines())
    if result.status:
        assert not result.output
        return re.sub(r"\.py:\d+", ".py:LINE", notes)
    if isinstance(source, dict):
        verify_configuration(result.output, source, values, folder)
    else:
        verify(result.output, path, values, folder, source in getattr(load_cases(file), "ROUNDED", ()))
    return notes + result.output


def register(owner: type) -> dict[str, Any]:
    """Make a class one of `transformers`, and return the fields of its configuration that name it."""
    transformers = pytest.importorskip("transformers")
    kind = f"toy_{owner.__name__.lower()}"
    if kind not in transformers.CONFIG_MAPPING:
        configuration = type(f"{owner.__name__}Config", (transformers.PretrainedConfig,), {"model_type": kind})
        transformers.AutoConfig.register(kind, configuration)
    setattr(transformers, owner.__name__, owner)
    return {"model_type": kind, "architectures": [owner.__name__]}


def verify_configuration(text: str, config: dict[str, Any], values: dict[str, Any], folder: Path) -> None:
    """Assert that a spec has the parameters of a model of `transformers`, and is equivalent to it with some values."""
    import transformers

    owner = getattr(transformers, config["architectures"][0])
    with torch.device("meta"):
        model = owner(transformers.AutoConfig.from_pretrained(folder))
    assert archspec.loads(text).params.total == sum(parameter.numel() for parameter in model.parameters())
    if not values:
        return
    changed = json.loads(json.dumps(config))
    for name, value in values.items():
        parts = [key for key in config if key.endswith("_config") and name.startswith(key.removesuffix("config"))]
        inner = changed[parts[0]] if parts else changed
        inner[name.removeprefix(parts[0].removesuffix("config")) if parts else name] = value
    (folder / "config.json").write_text(json.dumps(changed), encoding="utf-8")
    other = owner(transformers.AutoConfig.from_pretrained(folder)).eval()
    assert archspec.equivalent(archspec.loads(text, **values), other).verdict in ("equal", "outputs equal")


def describe(diagnostic: archspec.Diagnostic) -> str:
    lines = [f"error: {diagnostic.message}", *([f"help: {diagnostic.help}"] if diagnostic.help else [])]
    return re.sub(r"\.py:\d+", ".py:LINE", "".join(f"# {line}\n" for line in lines))


def tensors(outputs: Any) -> list[Any]:
    """Return the tensors of the results of a module, in order."""
    if isinstance(outputs, torch.Tensor):
        return [outputs]
    values = outputs.values() if isinstance(outputs, dict) else outputs
    if not isinstance(values, tuple | list) and hasattr(values, "__dict__") and not isinstance(outputs, dict):
        values = vars(values).values()
    return [tensor for item in values for tensor in tensors(item)]


@pytest.mark.parametrize("path", sorted(CASES.glob("*.py")), ids=lambda path: path.stem)
def test_each_spec_has_a_case(path: Path) -> None:
    assert [*read_sections(path.with_suffix(".arch"))] == case_names(load_cases(path.stem))
