"""What an object is, asked past everything its class or metaclass could put in the way.

`type(x).__name__`, `type(x).__mro__`, `x.__dict__` and `vars(x)` can all run code of the user: a metaclass with
`__getattribute__`, a property called `__dict__`. So can `type(x) in (int, str)` and each set or dictionary of classes,
which ask a metaclass's `__eq__` and `__hash__`. These do not.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, TypeGuard, TypeVar

_Value = TypeVar("_Value")
# How C code gives access to an instance dictionary; anything else under that name is the user's own.
_BUILT_IN = (GetSetDescriptorType, MemberDescriptorType)
_PLAIN = (int, float, bool, str, list, tuple, dict, range)
_NAME = type.__dict__["__name__"]
_MODULE = type.__dict__["__module__"]
_MRO = type.__dict__["__mro__"]
_DICT = type.__dict__["__dict__"]
_WEAKLY = type.__dict__["__weakrefoffset__"]


def class_name(thing: object) -> str:
    """Name of the class of an object."""
    return name_of(type(thing))


def name_of(kind: type[Any]) -> str:
    """Name of a class; a property of its metaclass is not asked."""
    return str(_NAME.__get__(kind))


def mro_of(kind: type[Any]) -> tuple[type[Any], ...]:
    """The classes that a class inherits from, itself first."""
    return _MRO.__get__(kind)  # type: ignore[no-any-return]


def is_a(thing: object, kind: type[Any]) -> bool:
    """True if the class of an object inherits from `kind`; `__instancecheck__` and `__class__` are not asked."""
    return inherits(type(thing), kind)


def inherits(kind: type[Any], base: type[Any]) -> bool:
    """True if one class inherits from the other or is that; what their metaclasses say of it is not asked."""
    return type.__subclasscheck__(base, kind)


def is_one_of(thing: object, some: Iterable[type[Any]]) -> bool:
    """True if the class of an object is exactly one of these, told by identity: `in` would ask its metaclass."""
    return is_among(type(thing), some)


def is_among(kind: object, some: Iterable[object]) -> bool:
    """True if a class, or whatever else, is one of these itself, not only equal to one."""
    return id(kind) in map(id, some)


def is_registry(thing: object) -> TypeGuard[dict[str, Any]]:
    """True for what a module keeps its parameters, buffers and layers in: ordered dictionaries before torch 2.5."""
    return is_one_of(thing, (dict, OrderedDict))


def entry_of(kind: object, table: Mapping[Any, _Value]) -> _Value | None:
    """What a dictionary whose keys are classes has for one; None if it has nothing."""
    return next((value for one, value in table.items() if one is kind), None)


def is_referable(thing: object) -> bool:
    """True if weak references to an object can be made."""
    return bool(_WEAKLY.__get__(type(thing)))


def module_of(kind: type[Any]) -> str:
    """Name of the Python module that a class says it comes from; empty if that is no text."""
    name = _MODULE.__get__(kind)
    return name if type(name) is str else ""


def class_fields(kind: type[Any]) -> Any:
    """The class's own attributes as a read-only mapping."""
    return _DICT.__get__(kind)


def methods_of(kind: type[Any]) -> list[CodeType]:
    """Code of the methods of a class and of those that it inherits from outside torch."""
    return [function.__code__ for function in functions_of(kind)]


def functions_of(kind: type[Any]) -> list[FunctionType]:
    """The methods themselves."""
    bases = [base for base in mro_of(kind) if module_of(base).partition(".")[0] not in ("torch", "builtins")]
    values = (value for base in bases for value in list(class_fields(base).values()))
    return [value for value in values if type(value) is FunctionType]


def is_record(kind: type[Any]) -> bool:
    """True for a class that only keeps what it is given: its functions are those that Python itself calls."""
    bases = [base for base in mro_of(kind) if module_of(base).partition(".")[0] not in ("torch", "builtins")]
    entries = (entry for base in bases for entry in list(class_fields(base).items()))
    return all(name.startswith("__") for name, value in entries if type(value) is FunctionType)


def fields_of(thing: object) -> dict[str, Any]:
    """The instance dictionary of an object; empty if it has none, or one that is computed."""
    kind = type(thing)
    known = _getters.get(id(kind))
    getter = known[1] if known is not None and known[0]() is kind else _getter_of(kind)
    fields = getter(thing) if getter is not None else None
    return fields if type(fields) is dict else {}


def setting_of(thing: object, name: str) -> Any:
    """A plain value that an object, or its class, or a class itself, has under a name; None if there is none."""
    own = fields_of(thing)
    if name in own:
        return own[name]
    classes = _MRO.__get__(thing if type(thing) is type else type(thing))
    found = next((class_fields(one)[name] for one in classes if name in class_fields(one)), None)
    return found if is_one_of(found, _PLAIN) else None


_getters: dict[int, tuple[weakref.ref[type[Any]], Callable[[Any], Any] | None]] = {}
"""How the instance dictionary of each class is read, by address: hundreds of objects of few classes are read."""


def _getter_of(kind: type[Any]) -> Callable[[Any], Any] | None:
    entries = (_DICT.__get__(base).get("__dict__") for base in _MRO.__get__(kind))
    entry = next((entry for entry in entries if entry is not None), None)
    getter = entry.__get__ if entry is not None and is_one_of(entry, _BUILT_IN) else None
    address = id(kind)
    _getters[address] = (weakref.ref(kind, lambda _: _getters.pop(address, None)), getter)
    return getter
