"""Reads the memory behind tensors and storages: address, bytes, device, and whether torch's allocator made it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import torch

# Words at the start of a `TensorImpl` and of a `StorageImpl`. Private layout: `_layout_holds` tests it before use.
_STORAGE_OF_TENSOR = 2
_ADDRESS, _DELETER, _DEVICE, _NBYTES = 2, 3, 5, 6
_WORDS = ctypes.c_size_t * 7
_TENSOR_WORDS = ctypes.c_size_t * 3
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
    storage = _TENSOR_WORDS.from_address(_cdata_of_tensor(tensor))[_STORAGE_OF_TENSOR]
    return _read(storage) if storage else None


def memory_of_storage(storage: Any) -> Memory | None:
    """The memory behind an `UntypedStorage`."""
    if not _layout_holds():
        return _asked_politely(storage)
    return _read(storage._cdata)


def _read(storage: int) -> Memory | None:
    """Reads the words of a `StorageImpl` without making a Python object for it, which would stay for good."""
    words = _WORDS.from_address(storage)
    address, nbytes = words[_ADDRESS], words[_NBYTES]
    if not address or not nbytes:
        return None
    kind, index = words[_DEVICE] & 0xFF, words[_DEVICE] >> 8 & 0xFF
    if kind == _META:
        return None
    if kind == 0:
        return Memory(address, nbytes, "cpu", words[_DELETER] in _own_deleters())
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
    found = {_words_behind(plain)[_DELETER]}
    clone = getattr(torch, "_lazy_clone", None)
    if clone is not None:
        # Named, so that it is alive while its words are read.
        copy = clone(plain)
        found.add(_words_behind(copy)[_DELETER])
    return frozenset(found)


def _words_behind(tensor: torch.Tensor) -> list[int]:
    return list(_WORDS.from_address(tensor.untyped_storage()._cdata))


@lru_cache(maxsize=1)
def _layout_holds() -> bool:
    """True if fresh tensors of known contents read as expected, foreign memory included."""
    if ctypes.sizeof(ctypes.c_size_t) != 8:  # noqa: PLR2004
        return False
    ours, buffer = torch.empty(5, dtype=torch.float32, device="cpu"), bytearray(24)
    foreign = torch.frombuffer(buffer, dtype=torch.uint8)
    for tensor, nbytes in ((ours, 20), (foreign, 24)):
        words = _words_behind(tensor)
        link = _TENSOR_WORDS.from_address(_cdata_of_tensor(tensor))[_STORAGE_OF_TENSOR]
        expected = (tensor.untyped_storage()._cdata, tensor.data_ptr(), nbytes, 0)
        if (link, words[_ADDRESS], words[_NBYTES], words[_DEVICE] & 0xFF) != expected:
            return False
    return _words_behind(ours)[_DELETER] != _words_behind(foreign)[_DELETER]
