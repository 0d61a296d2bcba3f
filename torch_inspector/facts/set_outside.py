"""Where the text gives an attribute of a model a value after the model was made."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.modules import UnsavedFact
    from torch_inspector.facts.run import Run


_TURNS = (*syntax.LOOPS, ast.ListComp)
# What such methods give is to be forgotten, and so is what torch makes of nothing: noise, or the state of a sequence.
_FORGETS = frozenset(["clear", "draw", "forget", "reset", "resample", "sample"])
_FOR_NOW_ALONE = frozenset(["cache", "carry", "dropout", "episode", "hidden", "mask", "noise", "sequence", "state"])
_MADE = re.compile(r"(torch|\w)\.(new_)?(zeros|ones|full|empty|rand|randn|normal|bernoulli)(_like)?\(")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_FOR_NOW = "for now"


def is_lost(run: Run, one: UnsavedFact) -> bool:
    """True if the texts set the attribute for the model that was saved, once and for good, and for no other.

    Where `__init__` can be told the value, the other model has perhaps been told its own.
    """
    saved = one.other.removesuffix(f".{one.name}")
    trees = [tree for past in (*run.earlier, run) if (tree := syntax.parse(past.cell.source)) is not None]
    passing = {name for name in one.setters if _forgets(name) or _gives_nothing(trees, name, one.name)}
    owners = {owner for tree in trees for owner in _owners(tree, one, passing)}
    return owners == {saved} and not _is_called(run, saved) and not _is_told_when_made(run, one)


def _is_called(run: Run, path: str) -> bool:
    """True if the cell calls the model that was saved, too: the two are compared, or work together."""
    keys = {one.key for one in run.after.modules if path == one.path or path.startswith(f"{one.path}.")}
    return any(call.module in keys for call in run.trace.forwards)


def _is_told_when_made(run: Run, one: UnsavedFact) -> bool:
    """True if `__init__` takes the value from an argument, not only its size."""
    tree = syntax.parse(run.source_of(one.place.cell))
    made = syntax.function_around(tree, one.place.line) if tree is not None and one.place.line is not None else None
    if made is None:
        return False
    given = made.args
    every = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
    told = {each.arg for each in every if each is not None} - {given.args[0].arg if given.args else "self"}
    stored = sorted(filter(_is_assignment, syntax.own_statements(made)), key=lambda node: node.lineno)
    for node in stored:
        if not told.isdisjoint(_values(node.value)):  # type: ignore[attr-defined]
            told |= {name for target in syntax.targets_of(node) for name in _stored(target)}
    return f".{one.name}" in told


def _is_assignment(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None


def _stored(target: ast.expr) -> Iterator[str]:
    """Variables by their names, attributes as `.mean`."""
    for node in syntax.walk(target):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else f".{node.attr}"


def _values(value: ast.AST) -> Iterator[str]:
    """Variables that an expression reads, without those that are only sizes of what torch makes."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            yield node.id
        if not (isinstance(node, ast.Call) and _MADE.match(ast.unparse(node))):
            stack.extend(syntax.children(node))


def _forgets(method: str) -> bool:
    """True for `reset`, `clear_cache`, `sample_noise` and `init_hidden`; not for `init_stats` and `start_from`."""
    words = [one.lower() for one in _WORDS.findall(method)]
    return words[:1] != [] and (words[0] in _FORGETS or words[-1] in _FOR_NOW_ALONE)


def _gives_nothing(trees: list[ast.Module], method: str, attribute: str) -> bool:
    """True if all that a method gives an attribute is what torch makes of nothing."""
    functions = (one for tree in trees for one in syntax.walk(tree) if isinstance(one, ast.FunctionDef))
    own = [one for function in functions if function.name == method for one in syntax.own_statements(function)]
    given = [one.value for one in own if isinstance(one, ast.Assign) and _is_given(one, attribute)]
    return bool(given) and all(_MADE.search(ast.unparse(one)) for one in given)


def _is_given(statement: ast.Assign, attribute: str) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == attribute for one in statement.targets)


def _owners(tree: ast.Module, one: UnsavedFact, passing: set[str]) -> Iterator[str]:
    """What the attribute is set of, and what a method that sets it is called of, outside of classes."""
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, now = stack.pop()
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if called and node.func.attr in (*one.setters, "__setattr__"):  # type: ignore[attr-defined]
            name, owner = node.func.attr, ast.unparse(node.func.value)  # type: ignore[attr-defined]
            yield _FOR_NOW if now or name in passing else owner
        if isinstance(node, ast.Attribute) and node.attr == one.name and not isinstance(node.ctx, ast.Load):
            yield _FOR_NOW if now else ast.unparse(node.value)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
            yield "setattr"
        inner = () if isinstance(node, ast.ClassDef) else syntax.children(node)
        stack.extend((each, now or _passes(node)) for each in inner)


def _passes(node: ast.AST) -> bool:
    """True for loops, whose turns each set another value, and for values that torch makes of nothing."""
    made = isinstance(node, ast.Assign) and _MADE.match(ast.unparse(node.value)) is not None
    return made or isinstance(node, _TURNS)
