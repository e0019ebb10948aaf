"""A safe pickle reader: an interpreter of pickle opcodes that never imports or calls anything a file names.

A global must be in an allowlist. A call is passed, with inert arguments, to a function supplied by the caller. Of the
standard module `pickle`, only the names of the opcodes are used; `pickletools` documents them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Container, Sequence
from struct import unpack
from typing import BinaryIO, cast

MAX_PICKLE_BYTES = 32 * 1024 * 1024
MAX_OPERATIONS = 5_000_000
MAX_PENDING = 1_000_000


class PickleError(Exception):
    """A pickle that is invalid or not allowed. The message is a clause that follows the file name."""


class Global:
    """The name of a global (`module.name`), which is never imported."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Reader:
    """Reader of consecutive pickles in a stream.

    All pickles together have at most MAX_PICKLE_BYTES bytes and MAX_OPERATIONS opcodes; the stack has at most
    MAX_PENDING values.

    `names` lists the globals (`module.name`) that are allowed. `persistent` resolves a persistent identifier, `call`
    replaces the call of a global, and both raise PickleError for unknown input. Values are None, bool, int, float, str,
    bytes, tuple, list, dict, Global, and the results of `persistent` and `call`.
    """

    def __init__(
        self,
        stream: BinaryIO,
        names: Container[str],
        persistent: Callable[[object], object],
        call: Callable[[str, tuple[object, ...]], object],
    ) -> None:
        self._stream = stream
        self._remaining_bytes = MAX_PICKLE_BYTES
        self._operations = MAX_OPERATIONS
        self._names = names
        self._persistent = persistent
        self._call = call
        self._stack: list[object] = []
        self._marks: list[int] = []
        self._memo: dict[int, object] = {}

    def load(self) -> object:
        """Return the value of the next pickle. Raises PickleError."""
        self._stack, self._marks, self._memo = [], [], {}
        while True:
            self._operations -= 1
            if self._operations < 0:
                raise PickleError(f"too many pickle operations: the limit is {MAX_OPERATIONS:,}")
            operation = self._take(1)
            if operation == pickle.STOP:
                return self._pop()
            if operation in _VALUES:
                if len(self._stack) >= MAX_PENDING:
                    raise PickleError(f"too many values on the stack of a pickle: the limit is {MAX_PENDING:,}")
                self._stack.append(_VALUES[operation](self))
            elif operation in _ACTIONS:
                _ACTIONS[operation](self)
            elif operation in _IGNORED:
                self._take(_IGNORED[operation])
            else:
                raise PickleError(f"unsupported pickle opcode 0x{operation.hex()}")

    def _take(self, count: int) -> bytes:
        self._remaining_bytes -= count
        if self._remaining_bytes < 0:
            raise PickleError(f"pickle exceeds the limit of {MAX_PICKLE_BYTES:,} bytes")
        data = self._stream.read(count)
        if len(data) != count:
            raise PickleError("pickle is truncated")
        return data

    def _line(self) -> str:
        data = self._stream.readline(_MAX_LINE_LENGTH)
        self._remaining_bytes -= len(data)
        if not data.endswith(b"\n"):
            raise PickleError("invalid pickle: unterminated name")
        return _text(data[:-1])

    def _pop(self) -> object:
        if len(self._stack) <= (self._marks[-1] if self._marks else 0):
            raise PickleError("invalid pickle: stack underflow")
        return self._stack.pop()

    def _pop_to_mark(self) -> list[object]:
        if not self._marks:
            raise PickleError("invalid pickle: missing mark")
        start = self._marks.pop()
        items = self._stack[start:]
        del self._stack[start:]
        return items

    def _top(self, kind: type) -> object:
        value = self._stack[-1] if self._stack else None
        if type(value) is not kind:
            raise PickleError(f"invalid pickle: expected a {kind.__name__} on the stack")
        return value

    # The methods below implement opcodes.

    def _number(self, size: int, *, signed: bool = False) -> int:
        return int.from_bytes(self._take(size), "little", signed=signed)

    def _mark(self) -> None:
        self._marks.append(len(self._stack))

    def _pop_tuple(self, count: int) -> tuple[object, ...]:
        return tuple([self._pop() for _ in range(count)][::-1])

    def _extend(self, items: Sequence[object]) -> None:
        cast("list[object]", self._top(list)).extend(items)

    def _set(self, items: Sequence[object]) -> None:
        """Add keys, each before its value, to the mapping on the stack.

        Keys that are not strings may define equality, so they become None.
        """
        if len(items) % 2:
            raise PickleError("invalid pickle: key without a value")
        for key, value in zip(items[::2], items[1::2], strict=True):
            target = cast("dict[str | None, object]", self._top(dict))
            name = key if type(key) is str else None
            if name is not None and name in target:
                raise PickleError(f"`{name}` appears more than once")
            target[name] = value

    def _memoize(self, index: int) -> None:
        if not self._stack:
            raise PickleError("invalid pickle: stack underflow")
        self._memo[index] = self._stack[-1]

    def _recall(self, index: int) -> object:
        if index not in self._memo:
            raise PickleError("invalid pickle: undefined memo entry")
        return self._memo[index]

    def _global(self, module: object, name: object) -> Global:
        if not isinstance(module, str) or not isinstance(name, str):
            raise PickleError("invalid pickle: expected strings as the name of a global")
        full_name = f"{module}.{name}"
        if full_name not in self._names:
            raise PickleError(f"pickle refers to `{full_name}`, which is not allowed; nothing was run")
        return Global(full_name)

    def _reduce(self, function: object, arguments: object) -> object:
        if not isinstance(function, Global) or type(arguments) is not tuple:
            raise PickleError("invalid pickle: expected a global to call and a tuple of arguments")
        return self._call(function.name, cast("tuple[object, ...]", arguments))

    def _build(self) -> None:
        """Ignore the state of an object: PyTorch uses it only to attach metadata to mappings."""
        self._pop()
        self._top(dict)


_MAX_LINE_LENGTH = 1_000


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise PickleError("invalid pickle: string is not valid UTF-8") from None


_IGNORED = {pickle.PROTO: 1, pickle.FRAME: 8}
"""Opcodes with no effect on the value, and the sizes of their arguments in bytes."""

# pyright: reportPrivateUsage=false
_VALUES: dict[bytes, Callable[[Reader], object]] = {
    pickle.NONE: lambda r: None,
    pickle.NEWTRUE: lambda r: True,
    pickle.NEWFALSE: lambda r: False,
    pickle.BININT: lambda r: r._number(4, signed=True),
    pickle.BININT1: lambda r: r._number(1),
    pickle.BININT2: lambda r: r._number(2),
    pickle.LONG1: lambda r: r._number(r._number(1), signed=True),
    pickle.BINFLOAT: lambda r: unpack(">d", r._take(8))[0],
    pickle.BINSTRING: lambda r: _text(r._take(r._number(4))),
    pickle.SHORT_BINSTRING: lambda r: _text(r._take(r._number(1))),
    pickle.BINUNICODE: lambda r: _text(r._take(r._number(4))),
    pickle.SHORT_BINUNICODE: lambda r: _text(r._take(r._number(1))),
    pickle.BINUNICODE8: lambda r: _text(r._take(r._number(8))),
    pickle.BINBYTES: lambda r: r._take(r._number(4)),
    pickle.SHORT_BINBYTES: lambda r: r._take(r._number(1)),
    pickle.BINBYTES8: lambda r: r._take(r._number(8)),
    pickle.EMPTY_LIST: lambda r: list[object](),
    pickle.EMPTY_TUPLE: lambda r: (),
    pickle.EMPTY_DICT: lambda r: dict[object, object](),
    pickle.TUPLE: lambda r: tuple(r._pop_to_mark()),
    pickle.TUPLE1: lambda r: r._pop_tuple(1),
    pickle.TUPLE2: lambda r: r._pop_tuple(2),
    pickle.TUPLE3: lambda r: r._pop_tuple(3),
    pickle.BINGET: lambda r: r._recall(r._number(1)),
    pickle.LONG_BINGET: lambda r: r._recall(r._number(4)),
    pickle.GLOBAL: lambda r: r._global(r._line(), r._line()),
    pickle.STACK_GLOBAL: lambda r: r._global(*r._pop_tuple(2)),
    pickle.REDUCE: lambda r: r._reduce(*r._pop_tuple(2)),
    pickle.BINPERSID: lambda r: r._persistent(r._pop()),
}
"""Opcodes that push a value."""

_ACTIONS: dict[bytes, Callable[[Reader], object]] = {
    pickle.MARK: Reader._mark,
    pickle.POP: Reader._pop,
    pickle.POP_MARK: Reader._pop_to_mark,
    pickle.APPEND: lambda r: r._extend([r._pop()]),
    pickle.APPENDS: lambda r: r._extend(r._pop_to_mark()),
    pickle.SETITEM: lambda r: r._set(r._pop_tuple(2)),
    pickle.SETITEMS: lambda r: r._set(r._pop_to_mark()),
    pickle.BINPUT: lambda r: r._memoize(r._number(1)),
    pickle.LONG_BINPUT: lambda r: r._memoize(r._number(4)),
    pickle.MEMOIZE: lambda r: r._memoize(len(r._memo)),
    pickle.BUILD: Reader._build,
}
"""Opcodes that modify the stack or the memo."""
