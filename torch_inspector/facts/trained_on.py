"""What a text calls `backward()` on: the expressions, followed back through names, and the functions that do it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.ways_back import WHOLE, Part, Wanted, stored_in, taken_out, ways_back

_OFF = ("no_grad", "inference_mode", "set_grad_enabled")
_STORES = (ast.Assign, ast.AugAssign, ast.AnnAssign)
_EVENTS = (ast.Call, ast.Return, ast.Delete, *_STORES)

Learning = Mapping[str, frozenset[tuple[int, Part]]]
"""Functions that call `backward()` on what they are given, with the places of these arguments and the part of each."""


class Trained(NamedTuple):
    """What a block of statements trains on."""

    nodes: Mapping[int, frozenset[Part]]
    """Ids of the expressions that a `backward()` goes back through, with the parts of the values that it comes from."""
    names: frozenset[tuple[str, Part]]
    """Names from outside that it goes back to, each with the part of its value."""


def trained_in(body: list[ast.stmt], learning: Learning, returned: frozenset[Part] = frozenset()) -> Trained:
    """What a block calls `backward()` on, and somebody else does on these parts of what it gives back."""
    nodes, wanted = dict[int, frozenset[Part]](), set[tuple[str, Part]]()
    every = [node for one in body for node in syntax.walk(one)]
    off = {id(node) for one in every if is_off(one) for node in syntax.walk(one)}
    branched = {id(node) for one in every if isinstance(one, ast.If) for node in syntax.walk(one)}
    found = [one for one in every if isinstance(one, _EVENTS) and id(one) not in off]
    for one in sorted(found, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        values = list(_values(one, wanted, learning, returned))
        wanted -= {(taken_out(one), WHOLE)}  # nobody knows which parts are left
        if isinstance(one, (ast.Assign, ast.AnnAssign)) and id(one) not in branched:
            stored = {part.id for part in _targets(one) if isinstance(part, ast.Name)}
            wanted = {each for each in wanted if each[0] not in stored}
        for node, part in (way for value in values for way in ways_back(*value)):
            nodes[id(node)] = nodes.get(id(node), frozenset()) | {part}
            wanted |= {(node.id, part)} if isinstance(node, ast.Name) else set()
    return Trained({key: parts for key, parts in nodes.items() if key not in off}, frozenset(wanted))


def _values(
    one: ast.AST, wanted: set[tuple[str, Part]], learning: Learning, returned: frozenset[Part]
) -> Iterator[Wanted]:
    """What a statement or a call adds to what a gradient comes from."""
    if isinstance(one, _STORES):
        yield from stored_in(one, wanted)
    elif isinstance(one, ast.Return):
        yield from ((one.value, part) for part in returned if one.value is not None)
    elif isinstance(one, ast.Call):
        yield from (*_goes_back(one, learning), *((value, WHOLE) for value in _kept_in(one, wanted)))


def _kept_in(call: ast.Call, wanted: set[tuple[str, Part]]) -> list[ast.expr]:
    """What is put into a list that is wanted: `terms.append(loss)`."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "append" else None
    return call.args if isinstance(owner, ast.Name) and any(owner.id == name for name, _ in wanted) else []


def learning_in(functions: Iterable[ast.FunctionDef]) -> Learning:
    """Functions that call `backward()` on an argument; of two of one name the later one."""
    found: dict[str, frozenset[tuple[int, Part]]] = {}
    for one in functions:
        names = frozenset[tuple[str, Part]]() if is_off(one) else trained_in(one.body, {}).names
        places = {given.arg: place for place, given in enumerate(one.args.args)}
        found[one.name] = frozenset((places[name], part) for name, part in names if name in places)
    return found


def is_off(node: ast.AST) -> bool:
    """True for a block or a function in which no gradients are recorded."""
    if isinstance(node, ast.With):
        return any(name in ast.unparse(one.context_expr) for one in node.items for name in _OFF)
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any(name in ast.unparse(one) for one in decorators for name in _OFF)


def _goes_back(call: ast.Call, learning: Learning) -> Iterator[Wanted]:
    name = ast.unparse(call.func).rpartition(".")[2]
    if name == "backward" or name.endswith("_backward"):
        yield call, WHOLE
    elif isinstance(call.func, ast.Name):
        yield from ((call.args[place], part) for place, part in learning.get(name, ()) if place < len(call.args))


def _targets(one: ast.AST) -> Iterator[ast.expr]:
    for target in getattr(one, "targets", None) or [one.target]:  # type: ignore[attr-defined]
        yield from target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
