"""Arguments of public functions and methods that have another type than they are annotated with."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

import archspec
from archspec import ArchError, SelectionRule

if TYPE_CHECKING:
    from pathlib import Path

MODEL = archspec.load("bert-base-uncased", layers=1)
TEXT = 'layer L(n = 2)(x [n]) -> [n] {\n  w: param [n]\n  return x * .w\n}\nmodel "m" = L()\n'
SPEC = "bert-base-uncased"
BASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "loads": (archspec.loads, {"text": TEXT}),
    "load": (archspec.load, {"spec": SPEC}),
    "format": (archspec.format, {"text": TEXT}),
    "import_config": (archspec.import_config, {"source": {"model_type": "bert"}}),
    "count": (MODEL.count, {}),
    "graph": (MODEL.graph, {}),
    "graph of blocks": (MODEL.graph, {"level": "block"}),
    "cost": (archspec.cost, {"model": MODEL}),
    "fit": (archspec.fit, {"model": "gpt2", "device": "h100"}),
    "plan": (archspec.plan, {"model": MODEL, "device": "h100"}),
    "training_flops": (archspec.training_flops, {"model": MODEL}),
    "load_device": (archspec.load_device, {"device": "h100"}),
    "compare": (archspec.compare, {"first": MODEL, "others": (MODEL,)}),
    "diff": (archspec.diff, {"a": MODEL, "b": MODEL}),
    "apply": (archspec.diff(MODEL, MODEL).apply, {"model": MODEL}),
    "explain": (archspec.explain, {"model": MODEL, "number": "110M"}),
    "explain_flops": (archspec.explain_flops, {"model": MODEL, "number": "1T", "batch": 1, "seq": 8}),
    "formula": (archspec.formula, {"model": SPEC, "open": ("layers",)}),
    "audit": (archspec.audit, {"path": "none.yaml"}),
    "scaffold": (archspec.scaffold, {"path": "none"}),
    "verify": (archspec.verify, {"model": MODEL, "path": "none"}),
    "adapter": (archspec.adapter, {"source": "none"}),
    "search": (archspec.search, {"spec": SPEC, "vary": {"layers": [1]}}),
}
OBJECTS: list[object] = [
    object(),
    "x",
    "",
    -1,
    1.5,
    True,
    None,
    [1],
    [object()],
    {"a": object()},
    {1: 2},
    (),
    b"x",
    len,
]


@pytest.mark.parametrize("name", BASES)
def test_arguments_of_other_types_are_diagnostics(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an argument is, the call succeeds or says what is wrong with it."""
    monkeypatch.chdir(tmp_path)
    function, base = BASES[name]
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD or parameter.name == "progress":
            continue
        for value in OBJECTS:
            bound = signature.bind_partial()
            bound.arguments = {
                **base,
                parameter.name: (value,) if parameter.kind is parameter.VAR_POSITIONAL else value,
            }
            bound.arguments = {key: bound.arguments[key] for key in signature.parameters if key in bound.arguments}
            try:
                function(*bound.args, **bound.kwargs)
            except ArchError as error:
                assert error.diagnostics[0].code != "internal"
            except ValueError as error:
                assert str(error).startswith(("by is", "depth ", "level is", "expected ", "invalid number")), error


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MODEL.graph("block", "x"), "`graph` expects an integer or None as `depth`, found 'x'"),
        (lambda: MODEL.count(depth="x"), "`count` expects an integer or None as `depth`, found 'x'"),
        (lambda: MODEL.count(rules=[1]), "`count` expects a list as `rules`, found [1]"),
        (lambda: MODEL.count(rules=[SelectionRule(True, 5)]), "`SelectionRule` expects a string as `pattern`, found 5"),
        (lambda: archspec.compare(MODEL, MODEL, depth="x"), "`compare` expects an integer as `depth`, found 'x'"),
        (lambda: archspec.formula(SPEC, "layers", 3), "`formula` expects a string or a list as `open`, found 3"),
        (lambda: archspec.verify(MODEL, 3), "`verify` expects a string or a path as `path`, found 3"),
        (
            lambda: archspec.import_config({"model_type": "bert"}, ignore="x"),
            "`import_config` expects a list as `ignore`, found 'x'",
        ),
    ],
)
def test_the_message_names_the_argument(call: Any, message: str) -> None:
    with pytest.raises(ArchError) as caught:
        call()
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("usage", message)
