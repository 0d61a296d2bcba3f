"""Whether text that ran after a line may have changed what the line read, where nothing proves that it is the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from torch_inspector.facts import syntax
from torch_inspector.observe import as_torch
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.grounds import Grounds
from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.last_given import shares_line
from torch_inspector.observe.late_calls import late_bodies
from torch_inspector.observe.shapes import UNKNOWN, is_array, is_tensor
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import given_in
from torch_inspector.observe.written import writes

_CALLS_DEEP = 4
# Entries of a container that are looked at.
_MOST = 200
_SETTERS = frozenset(["setattr", "__setattr__", "delattr"])
_SPACES = frozenset(["globals", "exec", "vars", "locals"])
# What changes a container and no memory.
_OF_CONTAINERS = frozenset(
    ["append", "extend", "insert", "pop", "remove", "clear", "reverse", "appendleft", "popleft", "update", "setdefault"]
)
_PLAIN = (list, dict, set, tuple)


def may_have_changed(grounds: Grounds, scope: Scope, statement: ast.stmt) -> bool:
    """True if something that ran after what was read, in the scope or in those that called it, may have done so.

    Args:
        grounds: What was read.
        scope: Where it was.
        statement: That read it; what that does itself is known.
    """
    here: Scope | None = scope
    for _ in range(_CALLS_DEEP):
        if here is None:
            return False
        # An item that a loader asks for has no line: all of the text may be later.
        late = [one for one in _late(here, grounds.lines.get(id(here), 0)) if one is not statement]
        if any(_touches(grounds, one, here) for one in late):
            return True
        if any(_touches(grounds, one, None) for body in late_bodies(here, late) for one in syntax.walk(body)):
            return True
        here = here.caller
    return False


def _late(scope: Scope, line: int) -> Iterator[ast.AST]:
    """What runs after a line of a scope: the lines below, and the loops around it."""
    nodes = list(syntax.own_expressions(scope.node))
    loops = (one.lineno for one in nodes if isinstance(one, syntax.LOOPS) and syntax.spans(one, line))
    first = min(loops, default=line if shares_line(scope.node, line) else line + 1)
    stored = (ast.Store, ast.Del)
    for one in nodes:
        if isinstance(one, ast.Lambda):  # who has it calls it when he likes
            yield from syntax.walk(one)
        at = getattr(one, "lineno", 0)
        if at >= first or (at == line and isinstance(getattr(one, "ctx", None), stored)):
            yield one


def _touches(grounds: Grounds, node: ast.AST, scope: Scope | None) -> bool:
    """True for what gives an attribute, an entry or a global name another value, or writes into memory."""
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return not grounds.names.isdisjoint(node.names)
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) and node.attr in grounds.keys:
        return True
    if isinstance(node, ast.Call) and _is_setter(node, grounds):
        return True
    return not _is_other_entry(node, grounds) and any(_is_of(grounds, one, scope, node) for one in writes(node))


def _is_other_entry(node: ast.AST, grounds: Grounds) -> bool:
    """True for `c["k"] = …` where only other keys were read; no tensor has a key that is a text."""
    key = getattr(node.slice, "value", None) if isinstance(node, ast.Subscript) else None
    return type(key) is str and grounds.keys.isdisjoint({key, UNKNOWN})


def _is_setter(call: ast.Call, grounds: Grounds) -> bool:
    """True for `setattr(c, "k", …)` of one of the keys, or of who knows which, and for what gets at all names."""
    name = getattr(call.func, "attr", "") or dotted(call.func)
    if name in _SPACES:
        return bool(grounds.names or grounds.owners)
    key = next((one.value for one in call.args if isinstance(one, ast.Constant)), None)
    return name in _SETTERS and (key is None or key in grounds.keys or (key == "data" and bool(grounds.memory)))


def _is_of(grounds: Grounds, written: ast.expr, scope: Scope | None, node: ast.AST) -> bool:
    """False where what is written to is known to be something else."""
    value = _value(scope, written) if scope is not None else UNKNOWN
    if is_tensor(value) or is_array(value):
        return any(_may_share(value, one) for one in grounds.memory) or any(
            _may_hold(one, value) for one in grounds.owners
        )
    if is_one_of(value, _PLAIN):
        return any(one is value or one is UNKNOWN for one in grounds.owners)
    if is_one_of(value, (int, float, str)) or (scope is not None and _is_number(scope, written)):
        return False
    grows = isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _OF_CONTAINERS
    return bool(grounds.owners) or (bool(grounds.memory) and not grows)


def _value(scope: Scope, written: ast.expr) -> Any:
    """What is written to, as it is now: a list is no tensor by then."""
    here = scope.caller is None and isinstance(written, ast.Name)
    return scope.reading.names.get(written.id, UNKNOWN) if here else scope.names.value(written)  # type: ignore[attr-defined]


def _is_number(scope: Scope, written: ast.expr) -> bool:
    """True for `count` of `count += 1`, where it began with a number."""
    given = given_in(scope.node).get(written.id, []) if isinstance(written, ast.Name) else []
    return bool(given) and all(isinstance(one, ast.Constant) for one in given)


def _may_hold(owner: Any, value: Any, depth: int = 2) -> bool:
    """True for a container with such a tensor in it, and for what cannot be looked through."""
    if is_tensor(owner) or is_array(owner):
        return _may_share(owner, value)
    if is_one_of(owner, (int, float, str, bool, type(None))):
        return False
    if not is_one_of(owner, (list, tuple, dict)) or not depth or len(owner) > _MOST:
        return True
    return any(_may_hold(one, value, depth - 1) for one in (owner.values() if type(owner) is dict else owner))


def _may_share(one: Any, other: Any) -> bool:
    """True for two tensors of the same memory, and where one is an array, of which that is not known."""
    if not is_tensor(one) or not is_tensor(other):
        return True
    try:
        return bool(as_torch.untyped_storage(one).data_ptr() == as_torch.untyped_storage(other).data_ptr())
    except Exception:  # noqa: BLE001  (tensors without memory: meta, sparse)
        return True
