"""Whether text that runs after a line gives an attribute, an entry or a global name another value."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.source import dotted
from torch_inspector.observe.written_later import trees_around

_CALLS_DEEP, _ROUNDS = 4, 3
_LOOPS = (ast.For, ast.While, ast.AsyncFor)


def is_stored_later(scope: Scope, source: ast.expr, line: int) -> bool:
    """True if what an expression is made of may have been given another value after a line, by whichever name.

    Args:
        scope: Where it was read; its callers are read as well, and the functions that they call later.
        source: A name, an attribute or an entry.
        line: The line that read it.
    """
    keys, names = _keys_in([source]), _names_in([source])
    here: Scope | None = scope
    for _ in range(_CALLS_DEEP):
        if here is None:
            return False
        late = list(_late(here, line))
        if any(_stores(one, keys, names) for one in late) or _stored_by_called(here, late, keys, names):
            return True
        if here.caller is None or here.call is None:
            return False
        given = [here.arguments[one] for one in names if one in here.arguments]
        names = (names - here.arguments.keys()) | _names_in(given)
        keys |= _keys_in(given)
        # An item that something else asks for has no line: all of the text may be later.
        here, line = here.caller, getattr(here.call, "end_lineno", 0) or 0
    return False


def _late(scope: Scope, line: int) -> Iterator[ast.AST]:
    """What runs after a line of a scope: the lines below, and the loops around it."""
    nodes = list(syntax.own_expressions(scope.node))
    loops = (one.lineno for one in nodes if isinstance(one, _LOOPS) and one.lineno <= line <= (one.end_lineno or line))
    first = min(loops, default=line + 1)
    stored = (ast.Store, ast.Del)
    for one in nodes:
        at = getattr(one, "lineno", 0)
        if at >= first or (at == line and isinstance(getattr(one, "ctx", None), stored)):
            yield one


def _stored_by_called(scope: Scope, late: Iterable[ast.AST], keys: set[object], names: set[str]) -> bool:
    """True if a function that the late text calls stores one of them."""
    called = _called_in(late) - {scope.function.rpartition(".")[2]}
    known = [one for tree in trees_around(scope) for one in syntax.functions_of(tree)] if called else []
    seen: set[str] = {"__init__"}
    for _ in range(_ROUNDS):
        bodies = [one for one in known if one.name in called - seen]
        if any(_stores_as_global(one, keys, names) for one in bodies):
            return True
        seen |= called
        called = {name for one in bodies for name in _called_in(syntax.walk(one))}
    return False


def _stores_as_global(function: ast.FunctionDef | ast.AsyncFunctionDef, keys: set[object], names: set[str]) -> bool:
    """The same of a function, whose own names are others than those of the caller."""
    nodes = list(syntax.walk(function))
    shared = {name for one in nodes if isinstance(one, (ast.Global, ast.Nonlocal)) for name in one.names}
    given = {one.id for one in nodes if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
    return bool(names & shared & given) or any(_stores(one, keys, names) for one in nodes)


def _stores(node: ast.AST, keys: set[object], names: set[str]) -> bool:
    """True for `c.k = …`, `c["k"] = …`, `setattr(c, "k", …)`, `c.update(k=…)` and `globals()["name"] = …`."""
    if isinstance(node, ast.Attribute):
        return not isinstance(node.ctx, ast.Load) and node.attr in keys
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return _is_entry_of(node, keys, names)
    if isinstance(node, (ast.MatchAs, ast.MatchStar)):
        return node.name in names
    return isinstance(node, ast.Call) and _is_stored_by(node, keys, names)


def _is_entry_of(node: ast.Subscript, keys: set[object], names: set[str]) -> bool:
    """True for an entry by one of the keys; by a number or a variable, of the very container."""
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    if isinstance(key, str):
        return key in (keys | names if _is_space(node.value) else keys)
    inner = node.value.slice if isinstance(node.value, ast.Subscript) else None
    owner = inner.value if isinstance(inner, ast.Constant) else dotted(node.value).rpartition(".")[2]
    same = bool(keys) and owner in names | keys and not isinstance(node.slice, ast.Slice)
    return same and (not isinstance(node.slice, ast.Constant) or key in keys)


def _is_stored_by(call: ast.Call, keys: set[object], names: set[str]) -> bool:
    name = getattr(call.func, "attr", "") or dotted(call.func)
    first = call.args[0] if call.args else None
    if name in ("setattr", "__setattr__", "__setitem__", "setdefault", "pop", "delattr"):
        of_names = name == "setattr" and isinstance(first, ast.Name) and first.id in names
        constants = {one.value for one in call.args if isinstance(one, ast.Constant)}
        return of_names or bool(constants & keys)
    if name != "update":
        return False
    given: set[object] = {one.arg for one in call.keywords if one.arg is not None}
    given |= {one.value for one in getattr(first, "keys", ()) if isinstance(one, ast.Constant)}
    unknown = any(one.arg is None for one in call.keywords) or (first is not None and not isinstance(first, ast.Dict))
    owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    # `bar.update(1)` is of something else.
    own = _is_space(owner) or dotted(owner).rpartition(".")[2] in names | keys | {"__dict__"}
    return bool(given & (keys | names if _is_space(owner) else keys)) or (unknown and own and bool(keys))


def _is_space(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and dotted(value.func) in ("globals", "locals", "vars")


def _called_in(nodes: Iterable[ast.AST]) -> set[str]:
    calls = (one for one in nodes if isinstance(one, ast.Call))
    return {getattr(one.func, "attr", "") or dotted(one.func) for one in calls} - {""}


def _keys_in(sources: Iterable[ast.expr]) -> set[object]:
    """Attributes and constant keys of what is read."""
    nodes = [one for source in sources for one in syntax.walk(source)]
    found: set[object] = {one.attr for one in nodes if isinstance(one, ast.Attribute)}
    slices = (one.slice for one in nodes if isinstance(one, ast.Subscript))
    return found | {one.value for one in slices if isinstance(one, ast.Constant)}


def _names_in(sources: Iterable[ast.expr]) -> set[str]:
    nodes = (one for source in sources for one in syntax.walk(source))
    return {one.id for one in nodes if isinstance(one, ast.Name)}
