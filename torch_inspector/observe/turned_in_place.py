"""Variables whose shape the text changes in place: what they were made with tells nothing of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from torch_inspector.facts import syntax
from torch_inspector.observe.place import CodeFile

_TURNS = frozenset(
    ["transpose_", "t_", "squeeze_", "unsqueeze_", "resize_", "resize_as_", "swapaxes_", "swapdims_", "as_strided_",
     "set_", "swap_tensors"]
)  # fmt: skip
_WORDS = re.compile(rf"\b({'|'.join(sorted(_TURNS))})\(|\.data\s*=")
_ROUNDS = 3

Turners = Mapping[str, frozenset[object]]
"""Functions that turn what they are given: places and names of such parameters, by the function's name."""


def turners(files: Iterable[CodeFile]) -> Turners:
    """Those in some cells."""
    trees = [one.tree for one in files if _WORDS.search(one.code)]
    functions = [one for tree in trees if tree is not None for one in syntax.functions_of(tree)]
    found: dict[str, frozenset[object]] = {}
    # A function may hand on what it is given.
    for _ in range(_ROUNDS if functions else 0):
        for one in functions:
            parameters = [arg.arg for arg in (*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs)]
            places = enumerate(parameters[1:] if parameters[:1] == ["self"] else parameters)
            turned = turned_in(one, found)
            mine = {part for at, name in places if name in turned for part in (at, name)}
            found[one.name] = found.get(one.name, frozenset()) | mine
    return {name: parts for name, parts in found.items() if parts}


def turned_in(scope: ast.AST, others: Turners) -> frozenset[str]:
    """Variables of a scope that it turns itself, or gives to such a function; and those of the same tensors."""
    calls, same, turned = _parts_of(scope)
    turned |= {name for call in calls if others for name in _given_to(call, others)}
    for _ in range(_ROUNDS if turned and same else 0):
        turned |= {name for pair in same if not turned.isdisjoint(pair) for name in pair}
    return turned


@lru_cache(maxsize=128)
def _parts_of(scope: ast.AST) -> tuple[tuple[ast.Call, ...], tuple[tuple[str, str], ...], frozenset[str]]:
    """Calls of a scope, pairs of names for one object, and what it turns itself."""
    calls, same, turned = list[ast.Call](), list[tuple[str, str]](), set[str]()
    for one in syntax.own_expressions(scope):
        if isinstance(one, ast.Call):
            calls.append(one)
            turned |= _turned_by(one)
        elif isinstance(one, ast.Assign):
            names = [part.id for part in (*one.targets, one.value) if isinstance(part, ast.Name)]
            same.extend((name, one.value.id) for name in names[:-1] if isinstance(one.value, ast.Name))
            turned.update(name for part in one.targets if (name := _data_of(part)))
    return tuple(calls), tuple(same), frozenset(turned)


def _turned_by(call: ast.Call) -> set[str]:
    """`x` of `x.t_()` and of `torch.Tensor.t_(x)`."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in _TURNS:
        return set()
    return {one.id for one in (func.value, *call.args) if isinstance(one, ast.Name)}


def _data_of(target: ast.expr) -> str:
    """`x` of `x.data = …`."""
    data = isinstance(target, ast.Attribute) and target.attr == "data" and isinstance(target.value, ast.Name)
    return target.value.id if data else ""  # type: ignore[attr-defined]


def _given_to(call: ast.Call, others: Turners) -> set[str]:
    """Names that a call gives to parameters which are turned."""
    parts = others.get(getattr(call.func, "attr", "") or getattr(call.func, "id", ""), frozenset())
    given = [*enumerate(call.args), *((one.arg, one.value) for one in call.keywords)] if parts else []
    return {one.id for at, one in given if at in parts and isinstance(one, ast.Name)}
