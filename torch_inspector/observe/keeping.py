"""Where a function that is made in a turn of a loop goes: used up within the turn, or kept beyond it."""

from __future__ import annotations

import ast
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.source import KEEPS
from torch_inspector.observe.turns import Comprehension, Function, Turn, last_name

# Calls that use the function during the call and keep nothing.
_USES_AT_ONCE = frozenset(
    ("sorted", "sort", "min", "max", "any", "all", "sum", "reduce", "next", "apply", "apply_", "map_")
)
# Calls that hold what they are given: elements, not the call's result.
_COLLECTORS = frozenset(
    ("list", "tuple", "set", "frozenset", "dict", "deque", "OrderedDict", "ModuleList", "ModuleDict", "Sequential")
)
# Calls whose result calls the function later; names with a capital are classes, which keep it.
_WRAPPERS = frozenset(
    ("partial", "vmap", "jit", "compile", "grad", "lru_cache", "cache", "defaultdict", "staticmethod")
)
_LAZY = frozenset(("map", "filter"))
# Beginnings of names of functions which call what they are given, and give a value.
_EVALUATORS = (
    *("run", "time", "measure", "bench", "eval", "integ", "quad", "mini", "maxi"),
    *("sol", "find", "search", "opt", "fit", "score", "test", "check", "call"),
    *("count", "prof", "train", "jac", "hess", "root", "sample", "compute", "get"),
    *("print", "apply", "try", "plot", "draw", "mean", "average", "vjp", "jvp", "simul"),
)
# Beginnings of names of methods that keep a function for later, surely and probably.
_SURE = ("register", "on_", "add_callback", "add_done_callback", "add_handler", "add_hook", "add_listener")
_PROBABLE = ("subscribe", "connect", "bind", "observe", "push", "put", "enqueue", "attach", "schedule", "set_")
# Decorators with these words in their names keep the function and call it later.
_REGISTRIES = ("regist", "route", "command", "handler", "callback", "hook", "subscribe", "listen")
# Methods that give the object itself.
_CHAINED = frozenset(("to", "cuda", "cpu", "eval", "train", "float", "double", "half", "requires_grad_"))
# What a function can stand in without being kept or called by it.
_TRANSPARENT = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.IfExp, ast.Starred, ast.keyword)


class Kept(NamedTuple):
    """How something outlives its turn."""

    by: str
    """`append`, `register_forward_hook`, `assignment`, `comprehension`."""
    sure: bool


class _Way(NamedTuple):
    """What has happened to a function so far."""

    sure: bool = True
    lazy: bool = False
    """True for `map` and `filter`, which call the function when somebody asks for the elements."""
    wrapped: bool = False
    """True inside an object of a class: nearly always it keeps the function, but it may have called it when made."""
    names: frozenset[str] = frozenset()
    """Names that were followed."""


class Keeping:
    """Follows functions through the turns of one loop."""

    def __init__(self, turn: Turn, parents: dict[ast.AST, ast.AST]) -> None:
        self._turn = turn
        self._parents = parents

    def of(self, function: Function) -> Kept | None:
        """How a function outlives its turn; None if it is used at once or that cannot be told."""
        if isinstance(function, ast.Lambda):
            return self._follow(function, _Way())
        return self._by_decorator(function) or self._by_name(function.name, _Way())

    def _follow(self, node: ast.AST, way: _Way) -> Kept | None:
        while True:
            parent = self._parents.get(node)
            if parent is None or parent is self._turn.loop:
                return self._by_comprehension(way) if parent is not None else None
            chained = self._chained(parent)
            if chained is not None:
                node = chained
            elif isinstance(parent, _TRANSPARENT) or _holds(parent, node):
                node = parent
            else:
                return self._at(node, parent, way)

    def _at(self, node: ast.AST, parent: ast.AST, way: _Way) -> Kept | None:
        if isinstance(parent, ast.Call):
            return self._by_call(parent, node, way) if node is not parent.func else None
        if isinstance(parent, ast.Assign):
            return self._by_assignment(parent.targets, parent.value, way)
        if isinstance(parent, (ast.AnnAssign, ast.NamedExpr)) and parent.value is not None:
            return self._by_assignment([parent.target], parent.value, way)
        if isinstance(parent, ast.AugAssign) and isinstance(parent.op, (ast.Add, ast.BitOr)) and not way.lazy:
            return self._in(parent.target, "+=", way)
        if isinstance(parent, ast.GeneratorExp) and self._collected(parent):
            return self._follow(parent, way)
        return None

    def _chained(self, parent: ast.AST) -> ast.AST | None:
        """The call of `Layer(…).to(device)` for the attribute in it."""
        call = self._parents.get(parent)
        is_call = isinstance(parent, ast.Attribute) and isinstance(call, ast.Call) and call.func is parent
        return call if is_call and parent.attr in _CHAINED else None  # type: ignore[attr-defined]

    def _collected(self, generator: ast.AST) -> bool:
        """True if all elements of a generator expression are made before one is used."""
        parent = self._parents.get(generator)
        if isinstance(parent, ast.Starred):
            return True
        return isinstance(parent, ast.Call) and last_name(parent.func) in _COLLECTORS | {"extend", "update"}

    def _by_comprehension(self, way: _Way) -> Kept | None:
        loop = self._turn.loop
        if not isinstance(loop, Comprehension) or (isinstance(loop, ast.GeneratorExp) and not self._collected(loop)):
            return None
        return Kept("comprehension", way.sure)

    def _by_call(self, call: ast.Call, node: ast.AST, way: _Way) -> Kept | None:
        name = last_name(call.func)
        if isinstance(call.func, ast.Attribute) and (name in KEEPS or name.startswith((*_SURE, *_PROBABLE))):
            return self._by_method(call, call.func.value, name, way)
        if name == "setattr" and call.args[2:3] == [node]:
            return self._stored(call.args[0], call, ast.Tuple(call.args[:2], ast.Load()), way)
        if way.lazy or name in _USES_AT_ONCE:
            return None
        wrapped = self._wrapped(call, node, name.rpartition(".")[2], way)
        return self._follow(call, wrapped) if wrapped is not None else None

    def _wrapped(self, call: ast.Call, node: ast.AST, name: str, way: _Way) -> _Way | None:
        """The way on if the call's result holds the function, None if it does not."""
        if name in _LAZY and isinstance(call.func, ast.Name):
            return way._replace(lazy=True) if call.args[:1] == [node] else None
        if name in _COLLECTORS | _WRAPPERS or name.lstrip("_")[:1].isupper():
            return way._replace(wrapped=way.wrapped or name not in _COLLECTORS | _WRAPPERS)
        # A function that we do not know: a wrapper such as `safe(lambda x: …)`, or one that calls what it is given.
        lone = isinstance(node, ast.Lambda) and call.args == [node] and not call.keywords and bool(node.args.args)
        known = name.lstrip("_").lower().startswith(_EVALUATORS)
        return way._replace(sure=False) if lone and isinstance(call.func, ast.Name) and not known else None

    def _by_method(self, call: ast.Call, receiver: ast.expr, name: str, way: _Way) -> Kept | None:
        if self._taken_back(call, name) or (name.startswith("set_") and not self._turn.varies(receiver)):
            return None
        sure = name in KEEPS or name.startswith(_SURE)
        # A hook on one object that all turns share may mean to read the current value.
        shared_hook = name.startswith("register_") and not self._turn.varies(receiver)
        return self._in(receiver, name, way._replace(sure=way.sure and sure and not shared_hook))

    def _taken_back(self, call: ast.Call, name: str) -> bool:
        """True if what a call registers is gone when the turn ends."""
        parent = self._parents.get(call)
        if isinstance(parent, ast.withitem):
            return True
        if isinstance(parent, ast.Call) and last_name(parent.func) == "enter_context":
            return True
        return (name.startswith("register_") and self._turn.removes) or (name == "submit" and self._turn.awaits)

    def _in(self, holder: ast.expr, by: str, way: _Way) -> Kept | None:
        """What holds the function now: kept with it, or made in this turn and perhaps kept itself."""
        if ast.unparse(holder) in self._turn.emptied or self._leaves(holder):
            return None
        root = syntax.root_of(holder)
        if self._turn.makes(root):
            return self._by_name(root, way._replace(sure=False))
        made = isinstance(holder, ast.Call) and last_name(holder.func).rpartition(".")[2][:1].isupper()
        return None if made else Kept(by, way.sure)

    def _by_assignment(self, targets: list[ast.expr], value: ast.expr, way: _Way) -> Kept | None:
        for target in targets:
            kept = None
            if isinstance(target, (ast.Subscript, ast.Attribute)):
                kept = self._stored(target.value, target, target, way)
            elif isinstance(target, ast.Name):
                kept = self._rebound(target, value, way) or self._by_name(target.id, way)
            if kept is not None:
                return kept
        return None

    def _stored(self, holder: ast.expr, place: ast.AST, target: ast.AST, way: _Way) -> Kept | None:
        """Kept in an attribute or element that is another one in each turn; else the next turn overwrites it."""
        root = syntax.root_of(holder)
        text, line = ast.unparse(place), getattr(place, "lineno", 0)
        put_back = any(text == one and at > line for one, at in self._turn.written)
        if put_back or text in self._turn.emptied or not (self._turn.makes(root) or self._turn.varies(target)):
            return None
        return self._in(holder, "assignment", way)

    def _rebound(self, target: ast.Name, value: ast.expr, way: _Way) -> Kept | None:
        """`fs = [*fs, lambda: k]` and `xs = map(lambda x: x + k, xs)` keep what all turns made."""
        own = [n for n in syntax.walk(value) if isinstance(n, ast.Name) and n.id == target.id]
        other_uses = len(self._turn.uses.get(target.id, ())) > len(own)
        if not own or (way.lazy and other_uses) or target.id in self._turn.targets or self._leaves(target):
            return None
        anew = [g for g in self._turn.given if g.name == target.id and target.id not in syntax.names_in(g.value)]
        return None if anew else Kept("assignment", way.sure)

    def _by_name(self, name: str, way: _Way) -> Kept | None:
        """Something with a name is kept if it is handed on by this name."""
        if name in way.names or way.lazy:
            return None
        uses = self._turn.uses.get(name, [])
        asked = {p.attr for use in uses if isinstance(p := self._parents.get(use), ast.Attribute)}
        if asked & {"join", "result"}:
            return None
        way = way._replace(names=way.names | {name}, sure=way.sure and not (asked or way.wrapped))
        found = [kept for use in uses if (kept := self._follow(use, way)) is not None]
        return max(found, key=lambda kept: kept.sure, default=None)

    def _by_decorator(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Kept | None:
        for decorator in function.decorator_list:
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            name = last_name(call)
            if not any(word in name.lower() for word in _REGISTRIES) or self._leaves(function):
                continue
            given = [*decorator.args, *(k.value for k in decorator.keywords)] if isinstance(decorator, ast.Call) else []
            varies = not given or any(self._turn.varies(one) for one in given)
            if varies and not self._turn.makes(syntax.root_of(call)):
                return Kept(name, sure=bool(given))
        return None

    def _leaves(self, node: ast.AST) -> bool:
        """True if the loop ends in the very turn that comes here, by `break`, `return` or `raise` after it."""
        inside = False
        while (parent := self._parents.get(node)) is not None and node is not self._turn.loop:
            kinds = (ast.Return, ast.Raise) if inside else (ast.Return, ast.Raise, ast.Break)
            if any(isinstance(statement, kinds) for statement in _after(node, parent)):
                return True
            inside = inside or (
                isinstance(parent, (ast.For, ast.AsyncFor, ast.While)) and parent is not self._turn.loop
            )
            node = parent
        return False


def _after(node: ast.AST, parent: ast.AST) -> list[ast.stmt]:
    """The statements that follow one in the same suite."""
    for suite in ("body", "orelse", "finalbody"):
        statements = getattr(parent, suite, None)
        if type(statements) is list and node in statements:
            return statements[statements.index(node) + 1 :]
    return []


def _holds(parent: ast.AST, node: ast.AST) -> bool:
    """True for a comprehension whose elements are the node, and for `fs + [lambda: k]`."""
    if isinstance(parent, ast.BinOp):
        return isinstance(parent.op, ast.Add) and isinstance(node, (ast.List, ast.Tuple, ast.BinOp))
    return isinstance(parent, (ast.ListComp, ast.SetComp, ast.DictComp))
