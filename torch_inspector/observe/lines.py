"""Lines of a cell that did something to a variable, and names on a line, found in its text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

# Functions that train, and what they are given.
_TRAINS = re.compile(
    r"^(backward|step|_?(run_|do_)?(train|fit|learn|optimi[sz]e)(_(one|a|an|for|on|with|epoch|step|model|loop|batch|net)\w*)?)$"
)
_OPTIMIZER = re.compile(r"^opt(im|imizer|imiser)?(_|$)|_opt(im|imizer|imiser)?$")

_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Loop = ast.For | ast.AsyncFor | _Comprehension


@lru_cache(maxsize=64)
def assignment_line(tree: ast.AST, name: str, before: int) -> int | None:
    """The last line up to `before` that gives a variable its value, in the innermost function around `before`."""
    scope = syntax.scope_at(tree, before)
    lines = [node.lineno for node in syntax.own_statements(scope) if _assigns(node, name) and node.lineno <= before]
    return max(lines, default=None)


def _assigns(node: ast.stmt, name: str) -> bool:
    stored = (n for part in _written(node) for n in syntax.walk(part) if isinstance(getattr(n, "ctx", None), ast.Store))
    return any(dotted(n) == name for n in stored)


def _written(node: ast.stmt) -> list[ast.AST]:
    """Parts of a statement, without the statements inside it, that may give variables a value."""
    parts: list[ast.AST] = [part for part in syntax.children(node) if isinstance(part, ast.expr)]
    if isinstance(node, (ast.With, ast.AsyncWith)):
        parts.extend(node.items)
    return parts


@lru_cache(maxsize=64)
def loops_around(tree: ast.AST, line: int) -> tuple[tuple[int, int], ...]:
    """First and last line of each loop statement around a line in its function, innermost first."""
    around = [ends for ends in _loops_in(syntax.scope_at(tree, line)) if ends[0] <= line <= ends[1]]
    return tuple(sorted(around, key=lambda lines: (-lines[0], lines[1])))


@lru_cache(maxsize=64)
def _loops_in(scope: ast.AST) -> tuple[tuple[int, int], ...]:
    """First and last line of each loop statement of a function or a cell."""
    loops = [one for one in syntax.own_statements(scope) if isinstance(one, (ast.For, ast.AsyncFor, ast.While))]
    return tuple((one.lineno, one.end_lineno or one.lineno) for one in loops)


@lru_cache(maxsize=64)
def repeats_input(tree: ast.AST, line: int, columns: tuple[int, int] | None = None) -> bool:
    """True if the innermost loop around a call on this line binds none of the names that the call reads.

    `[net(x) for _ in range(50)]` samples the same input; `[net(x) for x in batches]` does not, `[m(x) for m in nets]`
    asks several modules, and a loop that trains gets another answer each time because the weights change.
    """
    loops = _loops_of(tree)
    calls = _calls_of(tree).get(line, [])
    exact = [call for call in calls if (call.col_offset, call.end_col_offset) == columns]
    around = ((one, loops[one]) for call in exact or calls for one in (call, *_comprehensions(call, loops)))
    return any(loop is not None and _repeats(node, loop) for node, loop in around)


@lru_cache(maxsize=64)
def _loops_of(tree: ast.AST) -> dict[ast.AST, ast.AST | None]:
    """The innermost loop of each node."""
    return dict(_in_loops(tree))


@lru_cache(maxsize=64)
def _calls_of(tree: ast.AST) -> dict[int, list[ast.Call]]:
    """Calls by the line on which they begin."""
    found: dict[int, list[ast.Call]] = {}
    for node in _loops_of(tree):
        if isinstance(node, ast.Call):
            found.setdefault(node.lineno, []).append(node)
    return found


def _comprehensions(node: ast.AST, loops: dict[ast.AST, ast.AST | None]) -> Iterator[ast.AST]:
    """Those around a call, but for the outermost: `[[net(x) for x in batches] for _ in range(50)]` samples too."""
    inner = loops[node]
    while isinstance(inner, _Comprehension) and isinstance(loops[inner], _Comprehension):
        yield inner
        inner = loops[inner]


def _in_loops(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """Every node with the innermost loop that runs it again and again."""
    stack: list[tuple[ast.AST, ast.AST | None]] = [(tree, None)]
    while stack:
        node, loop = stack.pop()
        yield node, loop
        once = _run_once(node)
        inner = node if isinstance(node, (Loop, ast.While)) else loop
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            inner = None
        stack.extend((child, loop if child in once else inner) for child in syntax.children(node))


def _run_once(node: ast.AST) -> list[ast.AST]:
    """Parts of a loop that are evaluated before it begins."""
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return [node.iter]
    # The iterables of a comprehension make batches; none of them is a call of the module on one and the same input.
    return [*node.generators] if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)) else []


def _repeats(node: ast.AST, loop: ast.AST) -> bool:
    bound = bound_in(loop)
    if not isinstance(node, ast.Call):
        used = {n.id for n in syntax.walk(node) if isinstance(n, ast.Name)} - bound_in(node)
        return bool(used) and not used & bound and not _trains(loop)
    return _repeats_call(node, loop, bound)


def _repeats_call(call: ast.Call, loop: ast.AST, bound: frozenset[str]) -> bool:
    given = {n.id for a in call.args for n in syntax.walk(a) if isinstance(n, ast.Name)}
    callee = {n.id for n in syntax.walk(call.func) if isinstance(n, ast.Name)}
    return bool(given) and not (given | callee) & bound and not _makes_new(call) and not _trains(loop)


@lru_cache(maxsize=256)
def _trains(loop: ast.AST) -> bool:
    return any(map(_is_training, (n for n in syntax.walk(loop) if isinstance(n, ast.Call))))


def _is_training(call: ast.Call) -> bool:
    """True for `backward()`, and for functions that train by their names or are given an optimizer."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("train", "eval"):
        return False  # the mode
    if _TRAINS.search(dotted(call.func).rpartition(".")[2]):
        return True
    given = [*call.args, *(one.value for one in call.keywords)]
    return any(_OPTIMIZER.search(dotted(argument).rpartition(".")[2]) for argument in given)


def _makes_new(call: ast.Call) -> bool:
    """True if an argument is itself the result of a call: `net(torch.randn(5, 3))` is given something new each time."""
    return any(isinstance(n, ast.Call) for argument in call.args for n in syntax.walk(argument))


@lru_cache(maxsize=256)
def bound_in(loop: ast.AST) -> frozenset[str]:
    """Names that a loop gives a value."""
    stored = (n for n in syntax.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return frozenset(n.id for n in stored)
