"""Origins of values: the address and the source line of the operation that computed each base first."""

from __future__ import annotations

from collections.abc import Iterable

from archspec.core.record import Record
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.nodes import Element, children, is_base


class ModuleLocation(Record):
    """An address, empty for the model itself, and a location in a file."""

    address: str
    source: str

    def __str__(self) -> str:
        return f"{self.address} ({self.source})" if self.address else self.source


class LocationIndex:
    """The places of one side of a comparison, and its bases in program order."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.bases: dict[Element, ModuleLocation] = {}
        self._seen: set[Element] = set()

    def note(self, arrays: Iterable[Array | None], address: str, source: str) -> None:
        """Give their place to the bases that first occur in the results of an operation."""
        table = self.arrays.elements.table
        waiting = [array.element for array in arrays if array is not None]
        while waiting:
            element = waiting.pop()
            if element in self._seen:
                continue
            self._seen.add(element)
            if is_base(table, element):
                self.bases[element] = ModuleLocation(address, source)
            waiting += children(table, element)
