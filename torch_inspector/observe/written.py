"""What a part of the text writes to, by which other names the same is known, and who may write to what he is given."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

_IN_PLACE = re.compile(r"^_?[a-z]\w*[a-z\d]_$")
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
     "from_numpy", "asarray", "as_tensor", "contiguous", "to", "cpu", "expand", "narrow", "select", "unfold",
     "view_as", "expand_as", "reshape_as", "movedim", "moveaxis", "swapaxes", "diagonal", "type", "byte", "short",
     "char", "requires_grad_"]
)  # fmt: skip
_SHOWN = frozenset(["T", "mT", "H", "mH", "data", "real"])
# What only looks at what it is given, and what works on copies.
_LOOKS = frozenset(
    ["print", "display", "float", "int", "bool", "str", "repr", "len", "type", "id", "round", "range", "isinstance",
     "list", "tuple", "set", "zip", "enumerate", "reversed", "iter", "next", "min", "max", "sum", "sorted", "abs",
     "tqdm", "TensorDataset", "DataLoader"]
)  # fmt: skip
_COPY = frozenset(["torch", "np", "numpy", "F", "math", "plt", "functional", "nn"])
_ROUNDS = 3


def names_in(source: ast.expr) -> frozenset[str]:
    """What an expression is called: `frames` of `frames[1:]`, and of `self.frames`; of a list all that is in it."""
    while isinstance(source, (ast.Subscript, ast.Call)):
        source = source.value if isinstance(source, ast.Subscript) else (*source.args, source.func)[0]
    if isinstance(source, (ast.List, ast.Tuple)):
        return frozenset[str]().union(*map(names_in, source.elts))
    last = source.attr if isinstance(source, ast.Attribute) else getattr(source, "id", "")
    return frozenset([last] if last else [])


def alike(scope: ast.AST, names: frozenset[str]) -> frozenset[str]:
    """The names, and those that loops and assignments give the same, or parts of it."""
    for _ in range(_ROUNDS):
        more = {name for target, value in _bindings(scope) if shares(value, names) for name in _stored(target)}
        names |= more
    return names


def shares(value: ast.expr, names: frozenset[str]) -> bool:
    """True for a part of what the names stand for, and for what shows its memory."""
    if isinstance(value, ast.Call):
        last = dotted(value.func).rpartition(".")[2] or getattr(value.func, "attr", "")
        parts = [*value.args, *([value.func.value] if isinstance(value.func, ast.Attribute) else [])]
        return last in _SAME and any(shares(one, names) for one in parts)
    if isinstance(value, (ast.Subscript, ast.Starred)) or (isinstance(value, ast.Attribute) and value.attr in _SHOWN):
        return shares(value.value, names)
    if isinstance(value, (ast.Tuple, ast.List)):
        return any(shares(one, names) for one in value.elts)
    if isinstance(value, ast.Dict):
        return any(shares(one, names) for one in value.values)
    if isinstance(value, ast.IfExp):
        return shares(value.body, names) or shares(value.orelse, names)
    return bool(names_in(value) & names) if isinstance(value, (ast.Name, ast.Attribute)) else False


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


def is_written(nodes: Iterable[ast.AST], names: frozenset[str]) -> bool:
    """True if some part of the text writes to what one of the names stands for."""
    return any(parts_of(one) & names for node in nodes for one in writes(node))


def gives_away(node: ast.AST, names: frozenset[str], trees: Iterable[ast.AST]) -> bool:
    """True if a function of the user's, in one of the trees, is given what a name stands for, and writes to it."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
        return False
    given = [at for at, one in enumerate(node.args) if shares(one, names)]
    keys = {one.arg for one in node.keywords if shares(one.value, names)}
    if not given and not keys:
        return False
    called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
    inside = (one for tree in trees for one in syntax.functions_of(tree) if one.name == called)
    return any(_writes_to(one, given, keys) for one in inside)


def may_change(node: ast.AST, names: frozenset[str]) -> bool:
    """True if a part of the text writes to what one of the names stands for, or gives it to whoever may do so."""
    if is_written([node], names) or _keeps(node, names):
        return True
    if not isinstance(node, ast.Call) or dotted(node.func) in _LOOKS or dotted(node.func).partition(".")[0] in _COPY:
        return False
    return any(shares(one, names) for one in (*node.args, *(given.value for given in node.keywords)))


def _keeps(node: ast.AST, names: frozenset[str]) -> bool:
    """True for `self.last = x`: a method that is given nothing may write to it."""
    places = (ast.Attribute, ast.Subscript)
    kept = isinstance(node, ast.Assign) and any(isinstance(one, places) for one in node.targets)
    return kept and isinstance(node, ast.Assign) and shares(node.value, names)


def _writes_to(function: ast.FunctionDef | ast.AsyncFunctionDef, given: list[int], keys: set[str | None]) -> bool:
    """True if a function writes to some of its parameters, or to a part of one."""
    every = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    # Of a method the first is what it is called of.
    every = every[1:] if every[:1] == ["self"] else every
    wanted = {name for at, name in enumerate(every) if at in given} | (keys & {*every})
    own = alike(function, frozenset(name for name in wanted if name))
    return is_written(syntax.walk(function), own)


def _changed_by(call: ast.Call) -> Iterable[ast.expr]:
    """What a call changes by its name: `x` of `x.mul_(2)`, `nn.init.zeros_(x)` and `random.shuffle(x)`."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if any(one.arg == "inplace" for one in call.keywords) or name in _OF_ARGUMENTS:
        return call.args
    if _IN_PLACE.match(name):
        return [*call.args[:1], *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
    return [call.func.value] if isinstance(call.func, ast.Attribute) and name in _CHANGES else []


@lru_cache(maxsize=64)
def _bindings(scope: ast.AST) -> tuple[tuple[ast.expr, ast.expr], ...]:
    """What loops and assignments give a value, with that."""
    return tuple(_bindings_in(scope))


def _bindings_in(scope: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in syntax.walk(scope):
        if isinstance(node, (ast.For, ast.comprehension)):
            yield node.target, node.iter
        elif isinstance(node, ast.Assign):
            yield from ((one, node.value) for one in node.targets)
        elif isinstance(node, ast.NamedExpr):
            yield node.target, node.value


def _stored(target: ast.expr) -> set[str]:
    return {one.id for one in syntax.walk(target) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
