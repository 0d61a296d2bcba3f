"""Whether the text below a line may write into what a name stands for, so that values tell nothing of before."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.source import dotted

_IN_PLACE = re.compile(r"^[a-z]\w*[a-z\d]_$")
# Methods and functions that change what they belong to, or are given.
_CHANGES = frozenset(
    ["append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "appendleft", "popleft", "update",
     "setdefault", "resize", "put", "fill", "itemset", "partition"]
)  # fmt: skip
_OF_ARGUMENTS = frozenset(["shuffle", "copyto", "heappush", "heappop", "heapify"])
# What gives the same things once more, or the same memory.
_SAME = frozenset(
    ["view", "reshape", "flatten", "ravel", "squeeze", "unsqueeze", "detach", "numpy", "unbind", "split", "chunk", "t",
     "transpose", "permute", "values", "items", "iter", "next", "list", "tuple", "reversed", "enumerate", "zip", "tqdm",
     "from_numpy", "asarray", "as_tensor"]
)  # fmt: skip
_ROUNDS, _FUNCTIONS = 3, 20


def is_written_later(scope: Scope, source: ast.expr, first: int) -> bool:
    """True if what an expression stands for may be written to, or given more parts, from a line of the scope on.

    Args:
        scope: Where both are; a function's callers are read as well.
        source: A name, an attribute, or a part of one.
        first: The line.
    """
    names = _names_in(source)
    here: Scope | None = scope
    for _ in range(_ROUNDS):
        if here is None or not names:
            return False
        if _is_written(here, _alike(here.node, names), first):
            return True
        first, names = _call_line(here, names), _given(here, names)
        here = here.caller
    return False


def _names_in(source: ast.expr) -> frozenset[str]:
    """What an expression is called: `frames` of `frames[1:]`, and of `self.frames`; of a list all that is in it."""
    while isinstance(source, (ast.Subscript, ast.Call)):
        source = source.value if isinstance(source, ast.Subscript) else (*source.args, source.func)[0]
    if isinstance(source, (ast.List, ast.Tuple)):
        return frozenset[str]().union(*map(_names_in, source.elts))
    last = source.attr if isinstance(source, ast.Attribute) else getattr(source, "id", "")
    return frozenset([last] if last else [])


def _given(scope: Scope, names: frozenset[str]) -> frozenset[str]:
    """What the caller of a function calls the same."""
    found = (_names_in(scope.arguments[one]) if one in scope.arguments else {one} for one in names)
    return frozenset(one for part in found for one in part)


def _call_line(scope: Scope, names: frozenset[str]) -> int:
    """The line from which the caller has called a function."""
    known = [scope.arguments[one].lineno for one in names if one in scope.arguments]
    nodes = syntax.walk(scope.caller.node) if scope.caller is not None else ()
    calls = (one for one in nodes if isinstance(one, ast.Call))
    return min(known or [one.lineno for one in calls if dotted(one.func).endswith(scope.function)], default=0)


def _alike(scope: ast.AST, names: frozenset[str]) -> frozenset[str]:
    """The names, and those that loops and assignments give the same, or parts of it."""
    for _ in range(_ROUNDS):
        more = {name for target, value in _bindings(scope) if _shares(value, names) for name in _stored(target)}
        names |= more
    return names


def _bindings(scope: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in syntax.walk(scope):
        if isinstance(node, (ast.For, ast.comprehension)):
            yield node.target, node.iter
        elif isinstance(node, ast.Assign):
            yield from ((one, node.value) for one in node.targets)


def _shares(value: ast.expr, names: frozenset[str]) -> bool:
    """True for a part of what the names stand for, and for what shows its memory."""
    if isinstance(value, ast.Call):
        last = dotted(value.func).rpartition(".")[2] or getattr(value.func, "attr", "")
        parts = [*value.args, *([value.func.value] if isinstance(value.func, ast.Attribute) else [])]
        return last in _SAME and any(_shares(one, names) for one in parts)
    if isinstance(value, (ast.Subscript, ast.Starred)):
        return _shares(value.value, names)
    if isinstance(value, (ast.Tuple, ast.List)):
        return any(_shares(one, names) for one in value.elts)
    return bool(_names_in(value) & names) if isinstance(value, (ast.Name, ast.Attribute)) else False


def _stored(target: ast.expr) -> set[str]:
    return {one.id for one in syntax.walk(target) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def _is_written(scope: Scope, names: frozenset[str], first: int) -> bool:
    """True if a line from the first on writes to one of the names, or a function that the scope has inside does."""
    inner = [one for one in syntax.walk(scope.node) if isinstance(one, syntax.INNER) and one is not scope.node]
    own = ((node, first) for node in syntax.own_expressions(scope.node))
    nodes = (*own, *((node, 0) for one in inner for node in syntax.walk(one)))
    late = [node for node, line in nodes if getattr(node, "lineno", 0) >= line]
    written = {name for node in late for one in writes(node) for name in parts_of(one)}
    return bool(names & written) or any(_gives_away(scope, node, names) for node in late)


def parts_of(written: ast.expr) -> set[str]:
    """Names and attributes in what is written to, its indexes left out."""
    while isinstance(written, (ast.Subscript, ast.Call)):
        written = written.value if isinstance(written, ast.Subscript) else written.func
    return {getattr(one, "attr", "") or getattr(one, "id", "") for one in syntax.walk(written)}


def writes(node: ast.AST) -> Iterator[ast.expr]:
    """What a part of the text writes to."""
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        yield node.value
    elif isinstance(node, ast.AugAssign):
        yield node.target
    elif isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Store):
        yield node.value
    elif isinstance(node, ast.Call):
        yield from (one.value for one in node.keywords if one.arg == "out")
        yield from _changed_by(node)


def _changed_by(call: ast.Call) -> Iterable[ast.expr]:
    """What a call changes by its name: `x` of `x.mul_(2)`, `nn.init.zeros_(x)` and `random.shuffle(x)`."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if any(one.arg == "inplace" for one in call.keywords) or name in _OF_ARGUMENTS:
        return call.args
    if _IN_PLACE.match(name):
        return [*call.args[:1], *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
    return [call.func.value] if isinstance(call.func, ast.Attribute) and name in _CHANGES else []


def _gives_away(scope: Scope, node: ast.AST, names: frozenset[str]) -> bool:
    """True if a function of the user's is given what one of the names stands for, and writes to it."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    given = [at for at, one in enumerate(node.args) if _shares(one, names)]
    keys = {one.arg for one in node.keywords if _shares(one.value, names)}
    if not given and not keys:
        return False
    trees = (file.tree for file in (scope.file, *scope.reading.places.latest(_FUNCTIONS)) if file.tree is not None)
    inside = (one for tree in trees for one in syntax.walk(tree) if isinstance(one, ast.FunctionDef))
    return any(one.name == node.func.id and _writes_to(one, given, keys) for one in inside)


def _writes_to(function: ast.FunctionDef, given: list[int], keys: set[str | None]) -> bool:
    """True if a function writes to some of its parameters, or to a part of one."""
    every = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    wanted = {name for at, name in enumerate(every) if at in given} | (keys & {*every})
    alike = _alike(function, frozenset(name for name in wanted if name))
    return any(parts_of(one) & alike for node in syntax.walk(function) for one in writes(node))
