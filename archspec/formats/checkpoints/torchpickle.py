"""Decoding the pickles of `torch.save` into plain records.

A storage is a persistent identifier. A tensor is a call with a storage, an offset, a shape and strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, TypeGuard, cast

from archspec.formats.checkpoints.entries import BITS, MAX_DIMENSIONS, is_size
from archspec.formats.checkpoints.pickled import Global, PickleError, Reader


@dataclass(slots=True, eq=False)
class Storage:
    """A sequence of elements in the file, `bytes` long. A view of it starts at byte `start`."""

    key: str
    bytes: int
    dtype: str | None
    start: int


@dataclass(slots=True, eq=False)
class View:
    """A tensor: elements of a storage from byte `start`, with `strides` in elements."""

    storage: Storage
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


class Loader:
    """Reader of the pickles of one file. `storages` maps keys to (number of elements, bytes per element).

    `load` returns the value of the next pickle, with a View for each tensor. It raises PickleError.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.storages: dict[str, tuple[int, int]] = {}
        self.load = Reader(stream, _ALLOWED_NAMES, self._decode_storage, _evaluate_call).load

    def _decode_storage(self, identifier: object) -> Storage:
        """Decode `("storage", type, key, device, length)`; older files add a view (key, offset, length) or None."""
        if not isinstance(identifier, tuple) or len(cast("tuple[object, ...]", identifier)) not in (5, 6):
            raise PickleError("invalid storage record")
        word, kind, key, _, length, *views = cast("tuple[object, ...]", identifier)
        if word != "storage" or not isinstance(kind, Global) or not isinstance(key, str) or not is_size(length):
            raise PickleError("invalid storage record")
        name = kind.name.rpartition(".")[2]
        if name not in _STORAGES:
            raise PickleError(f"unknown storage type `{kind.name}`")
        dtype = _STORAGES[name]
        width = BITS[dtype] // 8 if dtype else 1
        if self.storages.setdefault(key, (length, width)) != (length, width):
            raise PickleError(f"conflicting sizes of storage `{key}`")
        start = 0
        if views and views[0] is not None:
            view = cast("tuple[object, ...]", views[0]) if isinstance(views[0], tuple) else ()
            offset = view[1] if len(view) == 3 else None
            if not is_size(offset):
                raise PickleError("invalid view of a storage")
            start = offset * width
        return Storage(key, length * width, dtype, start)


_STORAGES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64",
    "UntypedStorage": None,
}
"""Element type by storage class. None: the tensor specifies it, and lengths are in bytes."""

_UTILS = "torch._utils._rebuild_"
_TENSORS = {_UTILS + "tensor": 4, _UTILS + "tensor_v2": 6, _UTILS + "tensor_v3": 7}
"""Functions that rebuild a tensor, and their minimum number of arguments."""

_PARAMETERS = (_UTILS + "parameter", _UTILS + "parameter_with_state")
_SUBCLASS = "torch._tensor._rebuild_from_type_v2"
_ALLOWED_NAMES = frozenset(
    {
        *("collections.OrderedDict", "torch.Size", "torch.device", "torch.Tensor", "torch.nn.parameter.Parameter"),
        *(*_TENSORS, *_PARAMETERS, _SUBCLASS),
        *(f"torch.{name}" for name in (*_STORAGES, *BITS)),
        "torch.storage.UntypedStorage",
    }
)


def _evaluate_call(name: str, arguments: Sequence[object]) -> object:
    """Evaluate an allowed call to a mapping, a shape or a View."""
    if name == _SUBCLASS and len(arguments) >= 3:  # function, class, arguments of the function
        function, inner = arguments[0], arguments[2]
        if isinstance(function, Global) and function.name != _SUBCLASS and isinstance(inner, tuple):
            return _evaluate_call(function.name, cast("Sequence[object]", inner))
    if name == "collections.OrderedDict":
        return _build_mapping(arguments)
    if name == "torch.Size" and len(arguments) == 1 and isinstance(arguments[0], tuple):
        return cast("tuple[object, ...]", arguments[0])
    if name == "torch.device":
        return None
    if name in _PARAMETERS and arguments and isinstance(arguments[0], View):
        return arguments[0]
    if name in _TENSORS and len(arguments) >= _TENSORS[name]:
        return _build_view(arguments[:4], arguments[6] if name.endswith("_v3") else None)
    raise PickleError(f"invalid arguments in call to `{name}`")


def _build_mapping(arguments: Sequence[object]) -> dict[str | None, object]:
    """Return the items of an OrderedDict; older programs pass them as a list of pairs."""
    items = cast("list[object]", arguments[0]) if arguments and isinstance(arguments[0], list) else []
    mapping: dict[str | None, object] = {}
    for item in items:
        pair = cast("list[object]", item) if isinstance(item, list | tuple) else []
        if len(pair) != 2 or not isinstance(pair[0], str):
            raise PickleError("invalid item in a mapping")
        if pair[0] in mapping:
            raise PickleError(f"`{pair[0]}` appears more than once")
        mapping[pair[0]] = pair[1]
    return mapping


def _build_view(arguments: Sequence[object], element_type: object) -> View:
    storage, start, shape, strides = arguments
    if not isinstance(storage, Storage) or not is_size(start) or not _is_sizes(shape) or not _is_sizes(strides):
        raise PickleError("invalid shape, strides or offset of a tensor")
    if len(shape) != len(strides):
        raise PickleError(f"a tensor has {len(shape)} axes but {len(strides)} strides")
    dtype = storage.dtype
    if isinstance(element_type, Global):
        dtype = element_type.name.removeprefix("torch.")
    if dtype not in BITS:
        raise PickleError("a tensor has no element type")
    width = BITS[dtype] // 8 or 1
    first = storage.start + start * width
    last = first + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) * width
    if 0 not in shape and last + width > storage.bytes:
        raise PickleError(f"a tensor extends past the end of storage `{storage.key}`")
    return View(storage, first, shape, strides, dtype)


def _is_sizes(value: object) -> TypeGuard[tuple[int, ...]]:
    sizes = cast("tuple[object, ...]", value)
    return isinstance(value, tuple) and len(sizes) <= MAX_DIMENSIONS and all(map(is_size, sizes))
