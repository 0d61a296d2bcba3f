"""What a text makes of its variables, from statement to statement: which names go into which."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_ASSIGNS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)
# Methods by which what they are given goes into their owner.
_COLLECT = frozenset(["append", "extend", "insert", "add", "update"])
# A loop hands on to its next turn what it made in the last one.
_PASSES = 2


class Step(NamedTuple):
    """A part of a text that makes something of variables; a definition makes its name of its body."""

    targets: frozenset[str]
    names: frozenset[str]
    whole: frozenset[str]
    """Those of which it reads more than rows picked by their number: `w` of `w[:n]`, not of `w[0]`."""
    called: frozenset[str]
    """First and last parts of what it calls: `F` and `softmax`."""
    defines: bool


@lru_cache(maxsize=64)
def steps_of(source: str) -> tuple[Step, ...]:
    """Those of a text, in its order."""
    tree = syntax.parse(source)
    return tuple(_steps(tree)) if tree is not None else ()


def ingredients_of(source: str, names: Iterable[str]) -> list[str]:
    """Some variables of a text and all that they are made of, by however many steps; definitions are left out."""
    makers, taken = _makers(source), set[int]()
    found = dict.fromkeys(names)
    todo = list(found)
    for name in todo:
        for number, step in makers.get(name, ()):
            more = () if number in taken else sorted(step.names - found.keys())
            taken.add(number)
            found |= dict.fromkeys(more)
            todo += more
    return todo


def half_and_finite(run: Run, paths: set[str]) -> list[str]:
    """Float16 variables without NaN and infinity that the cell makes of others: `safe` of `unit.nan_to_num(0)`."""
    made = {variable_of(path) for path in paths}
    given, bad = set(made), {one.path for one in run.after.extremes}
    for _ in range(_PASSES):
        for step in steps_of(run.cell.source):
            made |= step.targets if step.whole & made else set()
    halves = (one.path for one in run.after.tensors if one.dtype == "float16" and one.path not in bad)
    return [path for path in halves if variable_of(path) in made - given]


def made_by(run: Run, name: str, calls: frozenset[str]) -> set[str]:
    """Names that the cell makes of a variable with one of some calls on the way, its own functions looked into.

    A call of a model that is given the variable counts.
    """
    calls |= {variable_of(one.path) for one in run.after.modules}
    for past in (*run.earlier, run):
        definitions = (step for step in steps_of(past.cell.source) if step.defines)
        calls |= {one for step in definitions if step.called & calls for one in step.targets}
    before, after = {name}, set[str]()
    for _ in range(_PASSES):
        for step in steps_of(run.cell.source):
            if step.names & after or (step.names & before and step.called & calls):
                after |= step.targets
            elif step.names & before:
                before |= step.targets
    return after


def variable_of(path: str) -> str:
    """`rows` of `rows[0].mean`."""
    return path.partition(".")[0].partition("[")[0]


@lru_cache(maxsize=64)
def _makers(source: str) -> dict[str, list[tuple[int, Step]]]:
    """The steps that make something of a name, with their numbers, by that name."""
    found: dict[str, list[tuple[int, Step]]] = {}
    for number, step in enumerate(steps_of(source)):
        for name in () if step.defines else step.targets:
            found.setdefault(name, []).append((number, step))
    return found


def _steps(tree: ast.AST) -> Iterator[Step]:
    for node in sorted(syntax.walk(tree), key=lambda one: getattr(one, "lineno", 0)):
        if isinstance(node, _SCOPES):
            yield _step([node.name], node, defines=True)
        elif isinstance(node, _ASSIGNS) and node.value is not None:
            yield _step(_stored(syntax.targets_of(node)), node.value)
        elif isinstance(node, (ast.For, ast.comprehension)):
            yield _step(_stored([node.target]), node.iter)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _COLLECT:
            yield _step([syntax.root_of(node.func.value)], node)


def _stored(targets: list[ast.expr]) -> list[str]:
    """`a`, `b` of `a, b[0]`."""
    found = (
        one for target in targets for one in syntax.walk(target) if isinstance(getattr(one, "ctx", None), ast.Store)
    )
    return [syntax.root_of(one) for one in found]


def _step(targets: list[str], value: ast.AST, *, defines: bool = False) -> Step:
    nodes = list(syntax.walk(value))
    names = [one for one in nodes if isinstance(one, ast.Name)]
    picked = {id(one.value) for one in nodes if isinstance(one, ast.Subscript) and _is_of_one(one.slice)}
    functions = [one.func for one in nodes if isinstance(one, ast.Call)]
    called = {part for one in functions for part in (syntax.root_of(one), getattr(one, "attr", ""))}
    whole = frozenset(one.id for one in names if id(one) not in picked)
    return Step(frozenset(targets), frozenset(one.id for one in names), whole, frozenset(called - {""}), defines)


def _is_of_one(index: ast.expr) -> bool:
    """True for `w[0]`, `w[-1, :]`."""
    first = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
    first = first.operand if isinstance(first, ast.UnaryOp) else first
    return isinstance(first, ast.Constant) and type(first.value) is int
