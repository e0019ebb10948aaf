"""Values of `lift` that tests make and read."""

from archspec import Type
from archspec.core.algebra import Dim
from archspec.ir.normal.arrays import Arrays
from archspec.pytorch.lift.idioms.recognizers import RECOGNIZERS
from archspec.pytorch.lift.values.builder import SpecBuilder
from archspec.pytorch.values.values import Argument, ModuleCall, Value


def builder() -> SpecBuilder:
    """Return what makes the values of a module."""
    made = SpecBuilder(Arrays(), RECOGNIZERS)
    made.frame = ModuleCall("", "Net", None)
    return made


def given(b: SpecBuilder, name: str, shape: tuple[Dim, ...], dtype: str = "real") -> Value:
    """Return an input of the module."""
    value = b.stored("input", name, Type(shape, dtype), b.frame)
    b.note_source(value)
    return value


def text(value: Argument) -> str:
    """Return how a value is made: `op[settings](arguments)`, or its address."""
    if not isinstance(value, Value):
        return str(value)
    if value.address:
        return value.address
    settings = ", ".join(f"{name}={setting}" for name, setting in value.settings.items())
    args = ", ".join(map(text, value.args))
    return value.op + (f"[{settings}]" if settings else "") + (f"({args})" if args else "")
