"""Reads the memory behind tensors and storages: address, bytes, device, and whether torch's allocator made it."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

import torch

# The start of a `TensorImpl`: where its storage is. Private layout: `_layout_holds` tests it before use.
_TENSOR = Struct("=16xQ").unpack_from
# The start of a `StorageImpl`: address, deleter, kind and index of the device, bytes.
_STORAGE_IMPL = Struct("=16xQQ8xBB6xQ").unpack_from
# The memory of this process: making an object for each piece that is read takes longer than the reading.
_EVERYTHING = (ctypes.c_char * sys.maxsize).from_address(0)
_DEVICE_TYPES = {0: "cpu", 1: "cuda", 6: "hip", 9: "xla", 12: "xpu", 13: "mps", 19: "hpu", 20: "privateuseone"}
_META = 14

_cdata_of_tensor: Callable[[Any], int] = torch._C.TensorBase.__dict__["_cdata"].__get__
_STORAGE = torch.UntypedStorage


class Memory(NamedTuple):
    """One piece of memory that a storage points at."""

    address: int
    """Where it begins; two storages of one address share it (lazy clones)."""
    nbytes: int
    device: str
    """`cpu`, `cuda:0`."""
    own: bool
    """False for memory that torch's allocator on the CPU has not made: NumPy's, a mapped file, shared memory."""


def memory_of_tensor(tensor: Any) -> Memory | None:
    """The memory behind a tensor; None if it has none of its own kind (sparse, meta, fake, functorch, empty)."""
    if not _layout_holds():
        return _asked_politely(tensor)
    (storage,) = _TENSOR(_EVERYTHING, _cdata_of_tensor(tensor))
    return _read(storage) if storage else None


def memory_of_storage(storage: Any) -> Memory | None:
    """The memory behind an `UntypedStorage`."""
    if not _layout_holds():
        return _asked_politely(storage)
    return _read(storage._cdata)


def _read(storage: int) -> Memory | None:
    """Reads the words of a `StorageImpl` without making a Python object for it, which would stay for good."""
    address, deleter, kind, index, nbytes = _STORAGE_IMPL(_EVERYTHING, storage)
    if not address or not nbytes or kind == _META:
        return None
    if kind == 0:
        return Memory(address, nbytes, "cpu", deleter in _own_deleters())
    return Memory(address, nbytes, f"{_DEVICE_TYPES.get(kind, 'device')}:{0 if index == 0xFF else index}", own=True)  # noqa: PLR2004


def _asked_politely(thing: Any) -> Memory | None:
    """The same through public methods, for a torch whose layout is another one: all memory counts as torch's."""
    try:
        if thing.device.type == "meta":
            return None
        storage = thing if type(thing) is _STORAGE else thing.untyped_storage()
        address, nbytes = storage.data_ptr(), storage.nbytes()
    except Exception:  # noqa: BLE001  (sparse, functorch, uninitialised, fake: each raises a kind of its own)
        return None
    return Memory(address, nbytes, str(storage.device), own=True) if address and nbytes else None


def exact() -> bool:
    """True if memory of other libraries can be told from torch's own."""
    return _layout_holds()


@lru_cache(maxsize=1)
def _own_deleters() -> frozenset[int]:
    """Addresses of the functions by which torch's CPU allocator, and lazy clones of its memory, are freed."""
    plain = torch.empty(1, device="cpu")
    found = {_impl_behind(plain).deleter}
    clone = getattr(torch, "_lazy_clone", None)
    if clone is not None:
        # Named, so that it is alive while its words are read.
        copy = clone(plain)
        found.add(_impl_behind(copy).deleter)
    return frozenset(found)


class _Impl(NamedTuple):
    """What is read of a `StorageImpl`."""

    address: int
    deleter: int
    device_type: int
    device_index: int
    nbytes: int


def _impl_behind(tensor: torch.Tensor) -> _Impl:
    return _Impl(*_STORAGE_IMPL(_EVERYTHING, tensor.untyped_storage()._cdata))


@lru_cache(maxsize=1)
def _layout_holds() -> bool:
    """True if fresh tensors of known contents read as expected, foreign memory included."""
    if ctypes.sizeof(ctypes.c_size_t) != 8:  # noqa: PLR2004
        return False
    ours, buffer = torch.empty(5, dtype=torch.float32, device="cpu"), bytearray(24)
    foreign = torch.frombuffer(buffer, dtype=torch.uint8)
    for tensor, nbytes in ((ours, 20), (foreign, 24)):
        impl = _impl_behind(tensor)
        (link,) = _TENSOR(_EVERYTHING, _cdata_of_tensor(tensor))
        expected = (tensor.untyped_storage()._cdata, tensor.data_ptr(), nbytes, 0)
        if (link, impl.address, impl.nbytes, impl.device_type) != expected:
            return False
    return _impl_behind(ours).deleter != _impl_behind(foreign).deleter
