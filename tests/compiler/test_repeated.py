"""Evaluations that repeat others leave the same bodies as those that do not."""

from pathlib import Path

import pytest
from paths import FAMILIES, ROOT, read_spec

from archspec import Source
from archspec.compiler.elaborate.models import check_definitions, check_files, compile_model
from archspec.compiler.evaluate.numbers import StaticArithmetic
from archspec.compiler.evaluate.program import Program
from archspec.compiler.resolve.files import Library
from archspec.core.diagnostics import Report
from archspec.ir.module import Body, Call, Module
from archspec.pipeline.files import parse_cached

SPECS = Path(str(ROOT / "specs"))
PATHS = {path.stem: path for path in FAMILIES}
EVERYDAY = ("bert", "longformer", "t5")
OTHERS = [name for name in PATHS if name not in EVERYDAY]

ALIASED = read_spec("repeated_aliased")


def bodies(label: str, text: str, repeats: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[list[object], list[str]]:
    """Every body that the models and definitions of a file are compiled to, with numbers instead of slots."""
    monkeypatch.setattr(StaticArithmetic, "repeats", repeats)
    report = Report()
    library, program = Library(str(SPECS), parse_cached), Program()
    unit = library.define(Source(label, text), report, folder=str(SPECS), root=str(SPECS), path=label)
    program.begin(report, unit.source)
    check_files(program, library, unit)
    for model in unit.models.values():
        compile_model(program, unit, model, {})
    check_definitions(program, unit)
    order: dict[Body | Module, int] = {}
    for body in program.bodies.values():
        if body is not None:
            order.setdefault(body, len(order))
            order.setdefault(body.module, len(order)) if body.module is not None else None
    found = [described(body, order) if body is not None else None for body in program.bodies.values()]
    errors = [f"{each.code} {each.span}: {each.message}" for each in report.diagnostics]
    return found, errors


def described(body: Body, order: dict[Body | Module, int]) -> object:
    """A body, whose slots are numbered by the inputs, tensors and calls that fill them."""
    slots: dict[int, object] = {slot: name for slot, (name, _) in enumerate(body.inputs)}
    slots.update({slot: f".{address}" for address, slot in body.weights})
    for number, call in enumerate(body.calls):
        present = [i for i, type in enumerate(call.outputs) if type is not None]
        slots.update({call.first + offset: (number, i) for offset, i in enumerate(present)})
        assert all(body.types[call.first + offset] == call.outputs[i] for offset, i in enumerate(present))

    def operand(value: object) -> object:
        return slots[value] if isinstance(value, int) else value

    def one(call: Call) -> object:
        inside = call.body and (order[call.body] if call.body in order else described(call.body, order))
        inputs = [(name, operand(value)) for name, value in call.inputs]
        attributes = sorted(call.attributes.items())
        place = call.span.start, call.span.end, call.span.source.label
        return call.kind, call.type, call.address, inside, inputs, attributes, call.outputs, place

    assert len(slots) == len(body.types)
    results = [(name, operand(value)) for name, value in body.outputs]
    discarded = {str(operand(slot)) for slot in body.discarded}
    calls = [one(call) for call in body.calls]
    return body.inputs, {a for a, _ in body.weights}, calls, results, body.results, body.unused, discarded, body.size


def same(label: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, errors = bodies(label, text, False, monkeypatch)
    repeated, others = bodies(label, text, True, monkeypatch)
    assert errors == others == []
    assert len(plain) == len(repeated)
    for expected, found in zip(plain, repeated, strict=True):
        assert found == expected


def test_names_of_one_tensor_are_not_confused(monkeypatch: pytest.MonkeyPatch) -> None:
    same("aliased.arch", ALIASED, monkeypatch)


@pytest.mark.parametrize("spec", EVERYDAY)
def test_bodies_are_the_same(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    same(f"specs/{spec}.arch", PATHS[spec].read_text(), monkeypatch)


@pytest.mark.slow  # all other families
@pytest.mark.parametrize("spec", OTHERS)
def test_bodies_of_other_specs_are_the_same(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    same(f"specs/{spec}.arch", PATHS[spec].read_text(), monkeypatch)
