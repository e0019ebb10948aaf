"""Records and nodes: named tuples that are cheap to define.

Defining a `NamedTuple` takes 0.1 ms or more, a record 0.01 ms; a command defines over a hundred. The modules that
define them need `from __future__ import annotations`.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections import _tuplegetter  # pyright: ignore  # reads a field, as in a NamedTuple
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypeGuard, TypeVar, cast, dataclass_transform

if TYPE_CHECKING:
    T = TypeVar("T")

    class _Constructor(Protocol):
        def __call__(self, kind: type[T], values: Iterable[object], /) -> T: ...


from_values = cast("_Constructor", tuple.__new__)  # pyright: ignore[reportUnknownMemberType]
"""Create a record or node from the values of all its fields, whose number is not checked."""


is_tuple = cast("Callable[[object], TypeGuard[tuple[object, ...]]]", tuple.__instancecheck__)
"""Whether a value is a tuple, record or node: `isinstance` as a function of one argument."""


class _RecordMeta(type):
    """Metaclass that makes annotated fields, after the inherited ones, the items of a tuple."""

    _fields: tuple[str, ...]
    _defaults: dict[str, object]
    _size: int

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, object]) -> _RecordMeta:
        inherited: tuple[str, ...] = getattr(bases[0], "_fields", ())
        new_fields = tuple(cast("dict[str, object]", namespace.get("__annotations__", {})))
        fields = inherited + new_fields
        defaults = {field: namespace.pop(field) for field in new_fields if field in namespace}
        getters: dict[str, object] = {
            field: _tuplegetter(index, None) for index, field in enumerate(new_fields, len(inherited))
        }
        attributes = {
            "__slots__": (),
            "__match_args__": fields,
            "_fields": fields,
            "_size": len(fields),
            "_defaults": defaults,
        }
        return super().__new__(cls, name, bases, {**namespace, **getters, **attributes})


class _RecordBase(tuple[object, ...], metaclass=_RecordMeta):
    """A tuple of the values of annotated fields."""

    def __new__(cls, *values: object, **named: object) -> Self:
        if named or len(values) != cls._size:
            missing_fields = cls._fields[len(values) :]
            try:
                values += tuple(map({**cls._defaults, **named}.__getitem__, missing_fields))
            except KeyError as error:
                raise TypeError(f"{cls.__name__} has no value for {error}") from None
            if len(values) > len(cls._fields) or not named.keys() <= set(missing_fields):
                raise TypeError(f"{cls.__name__} has only the fields {', '.join(cls._fields)}")
        return from_values(cls, values)

    def __getnewargs__(self) -> tuple[object, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        named = (f"{name}={value!r}" for name, value in self._asdict().items())
        return f"{type(self).__name__}({', '.join(named)})"

    def _asdict(self) -> dict[str, object]:
        return dict(zip(type(self)._fields, self, strict=True))

    def _replace(self, **changes: object) -> Self:
        values = [changes.pop(name, value) for name, value in zip(self._fields, self, strict=True)]
        if changes:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(changes)}")
        return from_values(type(self), values)


@dataclass_transform()
class Node(_RecordBase):
    """A node of a tree: a record that is equal only to records of its class. Subclasses add fields."""

    def replace(self, **changes: object) -> Self:
        """Return a copy with changed values of some fields."""
        return self._replace(**changes)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self), tuple(self)))


if TYPE_CHECKING:
    Record = NamedTuple
else:
    Record = _RecordBase
