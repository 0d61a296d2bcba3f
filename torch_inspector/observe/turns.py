"""What one turn of a loop changes, makes anew and takes away again, read from its text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.lines import Loop
from torch_inspector.observe.source import dotted

Function = ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
AnyLoop = Loop | ast.While

_SCOPES = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Calls that give what was there before the turn began, and nothing new.
_GETTERS = frozenset(("getattr", "next", "get", "get_submodule", "get_parameter", "pop", "popleft", "setdefault"))
# Calls that give something else each time, whatever they are given.
_ADVANCING = frozenset(("next", "pop", "popleft", "popitem", "readline", "choice", "sample"))
_EMPTYING = frozenset(("clear", "pop", "popleft", "popitem", "remove", "discard", "unregister"))
_AWAITING = frozenset(("result", "join", "wait", "as_completed"))
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp)


class Given(NamedTuple):
    """A name that gets a value in the turn."""

    name: str
    value: ast.expr
    line: int
    how: str
    """`assigned`, `added` or `element`."""


def parts_of_turn(loop: ast.AST) -> list[ast.AST]:
    """What a loop runs in each turn."""
    if isinstance(loop, (ast.For, ast.AsyncFor, ast.While)):
        return list(loop.body)
    if isinstance(loop, ast.DictComp):
        return [loop.key, loop.value]
    return [loop.elt] if isinstance(loop, (ast.ListComp, ast.SetComp, ast.GeneratorExp)) else []


def last_name(function: ast.expr) -> str:
    """`append` for `fs.append`; empty for what has no name."""
    return function.attr if isinstance(function, ast.Attribute) else dotted(function)


class Turn:
    """One turn of one loop."""

    def __init__(self, loop: ast.AST) -> None:
        self.loop = loop
        self.targets = set().union(*(syntax.names_in(target) for target in _targets(loop)))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Everything in the turn except the insides of functions and classes."""
        found: list[ast.AST] = []
        stack = parts_of_turn(self.loop)
        while stack:
            node = stack.pop()
            found.append(node)
            if not isinstance(node, _SCOPES):
                stack.extend(syntax.children(node))
        return found

    @cached_property
    def given(self) -> list[Given]:
        """Names that get a value, without those of comprehensions, which are their own."""
        return [given for node in self.nodes for given in _given(node)]

    @cached_property
    def uses(self) -> dict[str, list[ast.Name]]:
        """Where each name is read."""
        found: dict[str, list[ast.Name]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.setdefault(node.id, []).append(node)
        return found

    @cached_property
    def changing(self) -> dict[str, bool]:
        """Names with another value in each turn; False for those that may have an equal one."""
        found = dict.fromkeys(self.targets, True)
        if isinstance(self.loop, ast.While):
            found.update(dict.fromkeys(syntax.names_in(self.loop.test) & {g.name for g in self.given}, True))
        for _ in self.given:
            before = dict(found)
            for given in self.given:
                changes = self._changes(given, found)
                if changes is not None:
                    found[given.name] = found.get(given.name, False) or changes
            if found == before:
                break
        return found

    def _changes(self, given: Given, known: dict[str, bool]) -> bool | None:
        if given.how == "element":
            return None
        if given.how == "added":
            return isinstance(self.loop, ast.While)
        calls = [n for n in syntax.walk(given.value) if isinstance(n, ast.Call)]
        sure = [known[name] for name in syntax.names_in(given.value) - {given.name} if name in known]
        if any(sure) or any(last_name(call.func) in _ADVANCING for call in calls):
            return True
        return False if sure or calls or isinstance(given.value, _DISPLAYS) else None

    def late_names(self, line: int) -> dict[str, bool]:
        """Names whose value a function made in this line will not find again."""
        if isinstance(self.loop, ast.While):
            return self.changing
        early = self.targets | {given.name for given in self.given if given.line < line}
        return {name: sure for name, sure in self.changing.items() if name in early}

    def varies(self, node: ast.AST) -> bool:
        """True if an expression can stand for something else in each turn."""
        elements = {given.name for given in self.given if given.how == "element"}
        calls = any(isinstance(n, ast.Call) for n in syntax.walk(node))
        return calls or bool(syntax.names_in(node) & (self.changing.keys() | elements))

    def makes(self, name: str, seen: frozenset[str] = frozenset()) -> bool:
        """True if the turn itself makes what a name stands for."""
        if name in self.targets or name in seen:
            return False
        values = [given for given in self.given if given.name == name and given.how != "added"]
        return any(self._is_new(given, seen | {name}) for given in values)

    def _is_new(self, given: Given, seen: frozenset[str]) -> bool:
        value = given.value
        gets = isinstance(value, ast.Call) and last_name(value.func) in _GETTERS
        if gets or isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)):
            return any(self.makes(name, seen) for name in syntax.names_in(value))
        if given.how == "element" and not isinstance(value, _DISPLAYS):
            return any(self.makes(name, seen) for name in syntax.names_in(value))
        return True

    @cached_property
    def _calls(self) -> list[ast.Call]:
        return [n for n in self.nodes if isinstance(n, ast.Call)]

    @cached_property
    def emptied(self) -> frozenset[str]:
        """Text of what something is taken out of."""
        calls = (c.func.value for c in self._calls if isinstance(c.func, ast.Attribute) and c.func.attr in _EMPTYING)
        deleted = (t for n in self.nodes if isinstance(n, ast.Delete) for t in n.targets)
        taken = (t.value if isinstance(t, ast.Subscript) else t for t in deleted)
        return frozenset(ast.unparse(node) for node in (*calls, *taken))

    @cached_property
    def removes(self) -> bool:
        """True if the turn takes hooks away again."""
        return any(isinstance(c.func, ast.Attribute) and c.func.attr == "remove" for c in self._calls)

    @cached_property
    def awaits(self) -> bool:
        """True if the turn waits for what it began; `", ".join(words)` is no waiting."""
        return any(last_name(c.func) in _AWAITING and (not c.args or last_name(c.func) != "join") for c in self._calls)

    @cached_property
    def written(self) -> list[tuple[str, int]]:
        """Text and line of each attribute or element that is assigned."""
        targets = (t for n in self.nodes if isinstance(n, ast.Assign) for t in n.targets)
        return [(ast.unparse(t), t.lineno) for t in targets if isinstance(t, (ast.Attribute, ast.Subscript))]


def _targets(loop: ast.AST) -> list[ast.expr]:
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        return [loop.target]
    return [generator.target for generator in getattr(loop, "generators", ())]


def _given(node: ast.AST) -> Iterator[Given]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _pairs(target, node.value, node.lineno)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield from _pairs(node.target, node.value, node.lineno)
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield Given(node.target.id, node.value, node.lineno, "added")
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield from (Given(name, node.iter, node.lineno, "element") for name in syntax.names_in(node.target))
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield from _pairs(node.optional_vars, node.context_expr, node.context_expr.lineno)


def _pairs(target: ast.expr, value: ast.expr, line: int) -> Iterator[Given]:
    """Names of a target with their values: `a, b = b, a` has two."""
    if isinstance(target, ast.Name):
        yield Given(target.id, value, line, "assigned")
    elif isinstance(target, (ast.Tuple, ast.List)):
        values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        paired = values if len(values) == len(target.elts) else [value] * len(target.elts)
        for one, its in zip(target.elts, paired, strict=True):
            yield from _pairs(one, its, line)
