"""An allocation that failed: how much was asked for, and what the allocator said of its memory.

Makes nothing large itself: little memory may be left.
"""

from __future__ import annotations

import re
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

from torch_inspector.facts import Place, ShortageFact
from torch_inspector.observe import kinds
from torch_inspector.observe.memory import host_memory
from torch_inspector.observe.raised import chain_of, traceback_of

if TYPE_CHECKING:
    from torch_inspector.observe.place import Places

_ARGUMENTS: Any = BaseException.__dict__["args"]
_UNITS = {"bytes": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_AMOUNT = r"(\d+(?:\.\d+)?) (bytes|B|[KMGT]iB)"
_CPU = re.compile(r"(?:can't allocate|not enough) memory: you tried to allocate (\d+) bytes")
_DEVICE = re.compile(r"(CUDA|HIP|XPU|MPS)(?: backend)? out of memory")
_NUMBER = re.compile(r"\b(?:GPU|XPU|device) (\d+)")
# What the messages of all versions say, each with the field that it goes to.
_FIELDS = (
    ("asked_nbytes", re.compile(rf"[Tt]ried to allocate {_AMOUNT}")),
    ("total_nbytes", re.compile(rf"total capacity of {_AMOUNT}|{_AMOUNT} total capacity|max allowed: {_AMOUNT}")),
    ("free_nbytes", re.compile(rf"of which {_AMOUNT} is free|{_AMOUNT} free")),
    ("in_use_nbytes", re.compile(rf"this process has {_AMOUNT} memory in use")),
    (
        "allocated_nbytes",
        re.compile(rf"{_AMOUNT} is allocated by PyTorch|{_AMOUNT} already allocated|MPS allocated: {_AMOUNT}"),
    ),
    ("unallocated_nbytes", re.compile(rf"{_AMOUNT} is reserved by PyTorch but unallocated")),
    ("reserved_nbytes", re.compile(rf"{_AMOUNT} reserved in total")),
)
_TEXT = 80


def shortage_fact(error: BaseException, places: Places) -> ShortageFact | None:
    """What is known of the failed allocation behind an exception, or behind what it was raised from."""
    for one in chain_of(error):
        arguments = _ARGUMENTS.__get__(one)
        message = arguments[0] if arguments and type(arguments[0]) is str else ""
        if kinds.is_a(one, RuntimeError) and "allocate" in message:
            found = parsed(message)
            if found is not None:
                place, operation = _where(traceback_of(one), places)
                return found._replace(place=place, operation=operation)
    return None


def parsed(message: str) -> ShortageFact | None:
    """The numbers in a message of an allocator; None for any other message."""
    on_host = _CPU.search(message)
    if on_host is not None:
        machine = host_memory(full=True)
        asked = int(on_host[1])
        return ShortageFact(
            "cpu", asked, machine.total_nbytes, machine.free_nbytes, in_use_nbytes=machine.allocated_nbytes
        )
    backend = _DEVICE.search(message)
    amounts = {name: _nbytes(pattern, message) for name, pattern in _FIELDS}
    asked_nbytes = amounts["asked_nbytes"]
    if backend is None or asked_nbytes is None:
        return None
    reserved, allocated = amounts["reserved_nbytes"], amounts["allocated_nbytes"]
    if amounts["unallocated_nbytes"] is None and reserved is not None and allocated is not None:
        amounts["unallocated_nbytes"] = max(reserved - allocated, 0)
    number = _NUMBER.search(message)
    name = {"HIP": "cuda"}.get(backend[1], backend[1].lower())
    return ShortageFact(
        device=f"{name}:{number[1] if number else 0}",
        asked_nbytes=asked_nbytes,
        total_nbytes=amounts["total_nbytes"],
        free_nbytes=amounts["free_nbytes"],
        in_use_nbytes=amounts["in_use_nbytes"],
        allocated_nbytes=allocated,
        unallocated_nbytes=amounts["unallocated_nbytes"],
    )


def _nbytes(pattern: re.Pattern[str], message: str) -> int | None:
    found = pattern.search(message)
    if found is None:
        return None
    amount, unit = (group for group in found.groups() if group is not None)
    return int(float(amount) * _UNITS[unit])


def _where(entry: TracebackType | None, places: Places) -> tuple[Place, str]:
    """The innermost line of the user, and what it asked for: its expression, or torch's own function below it."""
    users, last = None, entry
    while entry is not None:
        users = entry if places.file_of(entry.tb_frame) is not None else users
        last, entry = entry, entry.tb_next
    if users is None or last is None:
        return Place(), ""
    place = places.place(users.tb_frame, users.tb_lineno)
    if last is users:
        return place, _expression(users, places)
    code, module = last.tb_frame.f_code, dict.get(last.tb_frame.f_globals, "__name__")
    name = str(getattr(code, "co_qualname", code.co_name))
    return place, f"{module}.{name}" if type(module) is str else name


def _expression(entry: TracebackType, places: Places) -> str:
    """Text of the expression that failed."""
    import ast

    file = places.file_of(entry.tb_frame)
    if "torch" not in sys.modules or file is None or file.tree is None:
        return ""
    from torch_inspector.observe.failing import failing_expressions

    found = failing_expressions(file.tree, entry)
    text = ast.unparse(found[0]) if len(found) == 1 else ""
    return text if len(text) <= _TEXT else ""
