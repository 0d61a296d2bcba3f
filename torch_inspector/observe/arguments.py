"""What the parameters of a function of the user's stand for in one call of it."""

from __future__ import annotations

import ast
from collections import OrderedDict, defaultdict
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FunctionType
from typing import Any

from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.operands import Names
from torch_inspector.observe.shapes import UNKNOWN

_DICTS = (dict, OrderedDict, defaultdict)
# Entries that a call hands over by name.
_ENTRIES = 200


def parameters_in(node: ast.Call, names: Names, function: FunctionType, owner: Any) -> dict[str, Any]:
    """Values of the parameters of a function in a call of it, `UNKNOWN` where the text does not say.

    Args:
        node: The call.
        names: What names mean there.
        function: What is called.
        owner: What it is bound to; `UNKNOWN` for nothing, None if that is not known.
    """
    code = function.__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    values: dict[str, Any] = dict.fromkeys(parameters, UNKNOWN)
    if not any(k.arg is None for k in node.keywords) and not any(type(a) is ast.Starred for a in node.args):
        values.update(_defaults(function))
    positional = list(parameters[: code.co_argcount])
    if owner is not UNKNOWN and positional:
        values[positional.pop(0)] = owner if owner is not None else UNKNOWN
    for name, argument in zip(positional, node.args, strict=False):
        if type(argument) is ast.Starred:
            break
        values[name] = names.value(argument)
    named, is_whole = _named(node, names)
    values.update((key, value) for key, value in named.items() if key in values)
    if code.co_flags & CO_VARKEYWORDS and is_whole:
        rest = code.co_varnames[len(parameters) + bool(code.co_flags & CO_VARARGS)]
        values[rest] = {key: value for key, value in named.items() if key not in parameters}
    return values


def _named(node: ast.Call, names: Names) -> tuple[dict[str, Any], bool]:
    """What a call hands over by name, that of `**batch` too, and whether that is all of it."""
    found, is_whole = dict[str, Any](), True
    for keyword in node.keywords:
        value = names.value(keyword.value)
        entries = _named_entries(value) if keyword.arg is None else {keyword.arg: value}
        found.update(entries or {})
        is_whole = is_whole and entries is not None
    return found, is_whole


def _named_entries(owner: Any) -> dict[str, Any] | None:
    """The entries of a plain dictionary whose keys are all names; None for anything else."""
    if not is_one_of(owner, _DICTS) or len(owner) > _ENTRIES:
        return None
    return dict(dict.items(owner)) if all(type(key) is str for key in dict.keys(owner)) else None


def _defaults(function: FunctionType) -> dict[str, Any]:
    """Plain values that parameters have unless a call gives others."""
    code, own = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(own) : code.co_argcount]
    values = {**dict(zip(names, own, strict=True)), **(function.__kwdefaults__ or {})}
    return {name: value for name, value in values.items() if is_one_of(value, (int, float, bool, str))}
