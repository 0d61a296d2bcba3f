"""Lines of a cell that did something to a variable, and names on a line, found in its text."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import stored_last

# Functions that train, and what they are given.
_TRAINS = re.compile(
    r"^(backward|step|_?(run_|do_)?(train|fit|learn|optimi[sz]e)(_(one|a|an|for|on|with|epoch|step|model|loop|batch|net)\w*)?)$"
)
OPTIMIZER = re.compile(r"^opt(im|imizer|imiser)?(_|$)|_opt(im|imizer|imiser)?$")
# What only looks at what it is given.
_LOOKS = frozenset(["print", "repr", "str", "type", "id", "len", "isinstance", "vars", "dir", "display"])

# What gives something else each time that it is called, by its name; other functions hand on what they are given.
_DRAWS = re.compile(
    r"rand|next|draw|(?<!up)(?<!down)sampl|(get|next|load|make|new|read)\w*batch|^batch|fetch|^pop|choice|shuffl"
    r"|permutation|(normal|uniform)_?$|bernoulli|poisson|multinomial|generate|collect|recv|reset|step"
)
_SETTINGS = frozenset(["device", "list", "dict", "range", "len"])
# How far the values of a loop are followed through names.
_FAR = 4

_FORS = (ast.For, ast.AsyncFor)
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Loop = ast.For | ast.AsyncFor | _Comprehension


class Spot(NamedTuple):
    """Where a call is."""

    line: int
    columns: tuple[int, int] | None = None
    """Where in its lines it begins and ends, if that is known."""


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
def repeats_input(
    tree: ast.AST,
    spot: Spot,
    optimizers: frozenset[str] | None = None,
    training: frozenset[str] | None = frozenset(),
    settled: frozenset[str] | None = None,
) -> bool:
    """True if a loop around a call on this line gives it the same input in each turn.

    `[net(x) for _ in range(50)]` samples the same input; `[net(x) for x in batches]` does not, `[m(x) for m in nets]`
    asks several modules, and a loop that trains gets another answer each time because the weights change. Batches of
    one input are looked through: `[[net(x) for x in batches] for _ in range(50)]` samples too.

    Args:
        tree: The cell.
        spot: Of the call.
        optimizers: Names that hold an optimizer; without them names tell.
        training: Names of functions that are known to train; None if no loop has trained, whatever its text can do.
        settled: Names that all input of the calls comes from which this one led to; None if these make some themselves.
    """
    loops, calls = _loops_of(tree), calls_at(tree, spot)
    trains = partial(_trains, optimizers=optimizers, training=training) if training is not None else _never
    return any(_is_sampled(call, loops, trains, settled) for call in calls)


def calls_at(tree: ast.AST, spot: Spot) -> list[ast.Call]:
    """The call, or all that begin in its line."""
    calls = _calls_of(tree).get(spot.line, [])
    exact = [call for call in calls if (call.col_offset, call.end_col_offset) == spot.columns]
    return exact or calls


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


def _is_sampled(
    call: ast.Call,
    loops: dict[ast.AST, ast.AST | None],
    trains: Callable[[ast.AST], bool],
    settled: frozenset[str] | None,
) -> bool:
    """True if the innermost loop around a call repeats it, or one further out repeats all loops inside."""
    loop, used, bound = loops[call], _read_by(call), frozenset[str]()
    given = used
    if loop is not None and (_repeats_call(call, loop) or (settled is not None and _repeats_all(call, loop, settled))):
        return not trains(loop)
    while isinstance(loop, Loop) and (outer := loops[loop]) is not None and not (_draws(loop) or _drawn(loop) & given):
        used, bound, loop = used | _read_by(loop), bound | bound_in(loop), outer
        if used - bound and not (used - bound) & bound_in(loop):
            return not trains(loop)
    return False


@lru_cache(maxsize=256)
def is_looked_through(tree: ast.AST, line: int) -> bool:
    """True if no loop around a line in its function goes on by a test, or through what is drawn anew."""
    around = [one for one in syntax.own_statements(syntax.scope_at(tree, line)) if isinstance(one, (ast.While, *_FORS))]
    inside = [one for one in around if one.lineno <= line <= (one.end_lineno or one.lineno)]
    return not any(isinstance(one, ast.While) or _draws(one) for one in inside)


@lru_cache(maxsize=256)
def _read_by(node: ast.AST) -> frozenset[str]:
    """Names that a call reads; of a loop those of what it goes through, and of what it gives to names."""
    parts: list[ast.AST] = [node]
    if isinstance(node, _FORS):
        parts = [node.iter, *(one.value for one in syntax.walk(node) if isinstance(one, ast.Assign))]
    return frozenset(one.id for part in parts for one in syntax.walk(part) if isinstance(one, ast.Name))


def _draws(loop: ast.AST) -> bool:
    """True if what a loop goes through is drawn anew each time: `for z in torch.randn(99, 8).split(32)`."""
    over = [loop.iter] if isinstance(loop, _FORS) else [one.iter for one in _heads(loop)]
    return any("rand" in dotted(one.func) for part in over for one in syntax.walk(part) if isinstance(one, ast.Call))


@lru_cache(maxsize=256)
def _drawn(loop: ast.AST) -> frozenset[str]:
    """Names that get something new in each turn: `x, y = get_batch()`; `x = x.to(device)` and `x = pad(row)` do not."""
    stores = [one for one in syntax.walk(loop) if isinstance(one, ast.Assign)]
    drawn = frozenset[str]()
    for _ in range(_FAR):
        new = (one for one in stores if _names(one.value) & drawn or _is_new(one.value, bound_in(loop)))
        drawn = drawn.union(*map(_targets, new))
    return drawn


def _targets(node: ast.Assign) -> frozenset[str]:
    return frozenset[str]().union(*map(_names, node.targets))


def _names(node: ast.AST) -> frozenset[str]:
    return frozenset(one.id for one in syntax.walk(node) if isinstance(one, ast.Name))


def _is_new(value: ast.AST, bound: frozenset[str]) -> bool:
    """True if a call in an expression gives something new, and not out of what the loop goes through."""
    return any(_is_draw(one) and not _names(one) & bound for one in syntax.walk(value) if isinstance(one, ast.Call))


def _is_draw(call: ast.Call) -> bool:
    called = dotted(call.func)
    name = called.rpartition(".")[2]
    given = [*call.args, *(one.value for one in call.keywords)]
    alone = isinstance(call.func, ast.Name) and not any(map(_names, given)) and name not in _SETTINGS
    return alone or "random" in called or _DRAWS.search(name) is not None


def _origins(loop: ast.AST, names: frozenset[str]) -> frozenset[str]:
    """What names of a loop are computed from in each turn, as far as that is told by plain assignments."""
    sources = _sources(loop)
    for _ in range(_FAR):
        names = frozenset[str]().union(*(sources.get(name, {name}) for name in names))
    return names


@lru_cache(maxsize=256)
def _sources(loop: ast.AST) -> dict[str, frozenset[str]]:
    """Names that a loop computes from others in each turn, each with all names that its values are written of."""
    values: dict[str, list[frozenset[str]]] = {}
    plain = set[int]()
    for store in (one for one in syntax.walk(loop) if isinstance(one, ast.Assign)):
        read = _names(store.value)
        plain.update(id(one) for target in store.targets for one in syntax.walk(target))
        for name in _targets(store):
            values.setdefault(name, []).append(read)
    stored = (one for one in syntax.walk(loop) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    rest = _drawn(loop) | {one.id for one in stored if id(one) not in plain}
    known = values.keys() & bound_in(loop) - rest
    return {
        name: frozenset[str]().union(*values[name]) - {name}
        for name in known
        if any(name not in read for read in values[name])
    }


def _heads(loop: ast.AST) -> list[ast.comprehension]:
    return list(getattr(loop, "generators", ()))


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
    if isinstance(node, _FORS):
        return [node.iter]
    # The iterables of a comprehension make batches; none of them is a call of the module on one and the same input.
    return [*node.generators] if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)) else []


def _repeats_call(call: ast.Call, loop: ast.AST) -> bool:
    """True if the call is given the same in each turn: nothing that the loop goes through, carries on or draws."""
    given, bound = frozenset[str]().union(*map(_names, call.args)), bound_in(loop)
    read = _origins(loop, given) | _names(call.func)
    return bool(given) and not read & bound and not any(_is_new(one, bound) for one in call.args)


def _repeats_all(call: ast.Call, loop: ast.AST, settled: frozenset[str]) -> bool:
    """True for a call of a function that needs nothing new for its input: `t.go(learn=False)`, `once()`."""
    drawn = _DRAWS.search(dotted(call.func).rpartition(".")[2]) is not None
    stored = set[str]().union(*map(stored_last, syntax.walk(loop)))
    return not drawn and not (_names(call) | settled) & stored and not any(map(_is_call, call.args))


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call)


@lru_cache(maxsize=256)
def _trains(loop: ast.AST, *, optimizers: frozenset[str] | None, training: frozenset[str]) -> bool:
    return any(_is_training(one, optimizers, training) for one in syntax.walk(loop) if isinstance(one, ast.Call))


def _never(_: ast.AST) -> bool:
    return False


def _is_training(call: ast.Call, optimizers: frozenset[str] | None, training: frozenset[str]) -> bool:
    """True for `backward()`, and for functions that train by their names or are given an optimizer."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("train", "eval"):
        return False  # the mode
    called = dotted(call.func).rpartition(".")[2]
    if _TRAINS.search(called) or called in training:
        return True
    given = [*call.args, *(one.value for one in call.keywords)]
    names = (dotted(argument).rpartition(".")[2] for argument in given if dotted(call.func) not in _LOOKS)
    return any(OPTIMIZER.search(one) and (optimizers is None or one in optimizers) for one in names)


@lru_cache(maxsize=256)
def bound_in(loop: ast.AST) -> frozenset[str]:
    """Names that a loop gives a value."""
    stored = (n for n in syntax.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return frozenset(n.id for n in stored)
