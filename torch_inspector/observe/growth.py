"""The line of code that makes a collection or a total grow."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.source import KEEPS, dotted

_JOINS = frozenset(["cat", "concat", "concatenate", "stack", "vstack", "hstack", "dstack"])
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# Kinds that are no growth themselves: any other line that fits wins over them.
_WEAK = frozenset(["assigned", "display", "named"])
# `hook(module, inputs, output)`.
_HOOK_PARAMETERS = 3


class Growth(NamedTuple):
    """A line that fits."""

    line: int
    kind: str
    """See `GraphFact.grown_by`."""
    closeness: int
    """2 for the very path, 1 for an element of the same container, 0 for the same attribute of another name."""
    node: ast.AST
    function: ast.AST | None
    """The function around it."""

    def rank(self) -> tuple[bool, int, int]:
        """The highest of several is the line to show."""
        return self.kind not in _WEAK, self.closeness, self.line


class _Spot(NamedTuple):
    """A statement or call, and what is around it."""

    node: ast.AST
    in_loop: bool
    function: ast.AST | None


def growth(
    tree: ast.AST, path: str, *, functions_only: bool = False, numbers: frozenset[str] = frozenset()
) -> Growth | None:
    """The line that collects into a container or adds to a variable.

    Args:
        tree: The code to search.
        path: What the user can type to get at the container or variable.
        functions_only: True for code of earlier cells, of which only functions can have run.
        numbers: Names of plain numbers, which keep no history.
    """
    spots = (spot for spot in _spots(tree) if spot.function is not None or not functions_only)
    found = [one for spot in spots if (one := _fitting(spot, path, numbers)) is not None]
    return max(found, key=Growth.rank, default=None)


@lru_cache(maxsize=32)
def _spots(tree: ast.AST) -> tuple[_Spot, ...]:
    """The parts of the code that can make something grow; asked for many paths in a row."""
    return tuple(spot for spot in _walk(tree) if isinstance(spot.node, (ast.Call, ast.AugAssign, ast.Assign)))


def _walk(tree: ast.AST) -> Iterator[_Spot]:
    stack = [_Spot(tree, in_loop=False, function=None)]
    while stack:
        spot = stack.pop()
        yield spot
        inside = spot.in_loop or isinstance(spot.node, _LOOPS)
        function, inside = (spot.node, False) if isinstance(spot.node, FUNCTIONS) else (spot.function, inside)
        stack.extend(_Spot(child, inside, function) for child in syntax.children(spot.node))


def _fitting(spot: _Spot, path: str, numbers: frozenset[str]) -> Growth | None:
    node = spot.node
    if _gives_number(node, numbers):
        return None
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in KEEPS:
            return None
        targets, kind = [node.func.value], "hook" if _is_hook(spot.function) else "append"
        return _closest(spot, targets, path, kind)
    if isinstance(node, ast.AugAssign):
        return _closest(spot, [node.target], path, _kind_of_addition(spot, node.target, isinstance(node.op, ast.Add)))
    if isinstance(node, ast.Assign):
        return _assignment(spot, node, path)
    return None


def _gives_number(node: ast.AST, numbers: frozenset[str]) -> bool:
    """True for `n += 1` and `all.append(loss.item())`: a plain number keeps no history."""
    value = node.args[-1] if isinstance(node, ast.Call) and node.args else getattr(node, "value", None)
    if isinstance(node, (ast.AugAssign, ast.Call)) and _is_number(value, numbers):
        return True
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.BinOp):
        target = ast.unparse(node.targets[0])
        added = list(terms(node.value))
        return len(added) > 1 and all(_is_number(one, numbers) or ast.unparse(one) == target for one in added)
    called = value.func if isinstance(value, ast.Call) else None
    plain = isinstance(called, ast.Attribute) and called.attr in ("item", "tolist") and not isinstance(node, ast.Assign)
    return plain or dotted(called or ast.Pass()) == "float"


def _is_number(value: ast.AST | None, numbers: frozenset[str]) -> bool:
    """True for a number as written, and for a name that the text gives nothing else."""
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Name) and value.id in numbers)


def numbers_in(trees: Iterable[ast.AST]) -> frozenset[str]:
    """Names that texts only ever give numbers as written: `eps = 1e-3`."""
    read = [_stores(tree) for tree in trees]
    return frozenset[str]().union(*(plain for plain, _ in read)).difference(*(others for _, others in read))


@lru_cache(maxsize=32)
def _stores(tree: ast.AST) -> tuple[frozenset[str], frozenset[str]]:
    """Names that a text gives a number as written, and those that it gives anything else."""
    nodes = list(syntax.walk(tree))
    given = (one for one in nodes if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant))
    plain = [part for one in given for part in one.targets if isinstance(part, ast.Name)]
    keys = set(map(id, plain))
    names = (one for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    others = {one.id for one in names if id(one) not in keys}.union(
        one.arg for one in nodes if isinstance(one, ast.arg)
    )
    return frozenset(one.id for one in plain), frozenset(others)


def _closest(spot: _Spot, targets: list[ast.expr], path: str, kind: str) -> Growth | None:
    closeness = max((_closeness(target, path) for target in targets), default=-1)
    line: int = getattr(spot.node, "lineno", 0)
    return Growth(line, kind, closeness, spot.node, spot.function) if closeness >= 0 else None


def _closeness(target: ast.expr, path: str) -> int:
    if ast.unparse(target) == path:
        return 2
    owner, place = dotted(_owner(target)), _owner_of_path(path)
    if not owner or _is_another_key(target, path):
        return -1
    if owner == place:
        return 1
    same_attribute = "." in owner and "." in place and owner.rsplit(".", 1)[1] == place.rsplit(".", 1)[1]
    return 0 if same_attribute else -1


def _is_another_key(target: ast.expr, path: str) -> bool:
    """True for `h['b']` where the path is `h['a'][3]`: another entry of the same container."""
    try:
        parts = list(syntax.walk(ast.parse(path, mode="eval").body))
    except (SyntaxError, ValueError):
        return False
    own = [one for one in syntax.walk(target) if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Constant)]
    keys = {_last(one.value): one.slice for one in parts if isinstance(one, ast.Subscript)}
    for one in own:
        key = keys.get(_last(one.value))
        words = isinstance(one.slice, ast.Constant) and type(one.slice.value) is str
        if words and isinstance(key, ast.Constant) and ast.unparse(key) != ast.unparse(one.slice):
            return True
    return False


def _last(owner: ast.expr) -> str:
    """`history` of `self.history`, which another name leads to outside of the class."""
    return ast.unparse(owner).rpartition(".")[2]


def _owner(node: ast.expr) -> ast.expr:
    """`history` for `history['loss'][-1]` and for `history.setdefault(name, [])`."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FETCHES:
            node = node.func.value
        else:
            return node


_FETCHES = frozenset(["setdefault", "get"])


def _owner_of_path(path: str) -> str:
    try:
        return dotted(_owner(ast.parse(path, mode="eval").body))
    except (SyntaxError, ValueError):
        return ""


def _assignment(spot: _Spot, node: ast.Assign, path: str) -> Growth | None:
    targets = [e for t in node.targets for e in (t.elts if isinstance(t, (ast.Tuple, ast.List)) else (t,))]
    targets = [target for target in targets if _closeness(target, path) >= 0]
    return _closest(spot, targets, path, _kind_of_assignment(spot, node, targets[0])) if targets else None


def _kind_of_assignment(spot: _Spot, node: ast.Assign, target: ast.expr) -> str:
    value, text = node.value, ast.unparse(target)
    if mentions(value, text):
        adds = isinstance(value, ast.BinOp) and any(isinstance(n, ast.Add) for n in syntax.walk(value))
        return _kind_of_addition(spot, target, adds)
    if isinstance(target, ast.Subscript):
        return "named" if isinstance(target.slice, ast.Constant) else "item"
    if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in _JOINS:
        return "joined"
    inner = value.args[0] if isinstance(value, ast.Call) and len(value.args) == 1 else value
    if isinstance(inner, syntax.COMPREHENSIONS):
        return "comprehension"
    return "display" if isinstance(value, DISPLAYS) else "assigned"


def _kind_of_addition(spot: _Spot, target: ast.expr, adds: bool) -> str:
    """A total grows in a loop, or as an attribute: a method is called again and again."""
    if not spot.in_loop and not isinstance(target, ast.Attribute):
        return "assigned"
    return "sum" if adds else "carried"


def mentions(value: ast.expr, text: str) -> bool:
    """True if a part of an expression reads so."""
    return any(isinstance(n, ast.expr) and ast.unparse(n) == text for n in syntax.walk(value))


def _is_hook(function: ast.AST | None) -> bool:
    arguments = function.args if isinstance(function, FUNCTIONS) else None
    return arguments is not None and len(arguments.args) == _HOOK_PARAMETERS and arguments.args[0].arg != "self"


def terms(value: ast.expr) -> Iterator[ast.expr]:
    """What a sum is of, in the order in which it was written."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        yield from terms(value.left)
        yield from terms(value.right)
    else:
        yield value
