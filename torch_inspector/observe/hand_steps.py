"""Steps that a text writes by hand: whether some may have run, on a model, since a moment in which its lines are known.

A text that ran before, or that names the tensors of another model, says nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from types import FrameType
from typing import Any, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.belonging import Verdict, belonging
from torch_inspector.observe.place import CodeFile, Places
from torch_inspector.observe.statements import stores_in

_WRITES = frozenset(["sub_", "add_", "copy_", "addcdiv_", "addcmul_", "_foreach_add_", "_foreach_sub_"])
# Lines of the user around one another, and functions that are read.
_DEEP, _FUNCTIONS = 12, 400
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Spot(NamedTuple):
    """A line that was running."""

    file: CodeFile
    line: int


class _Stretch(NamedTuple):
    """A part of a scope that may have run."""

    scope: ast.AST
    nodes: list[ast.AST]


class _Texts(NamedTuple):
    """What may have run since."""

    since: list[_Stretch]
    inside: list[_Function]
    """Functions that may have been called."""
    led: list[_Stretch]
    """The lines that were running and are not over."""


def way_to(places: Places, frame: FrameType | None) -> tuple[Spot, ...]:
    """The user's lines that lead to a frame, the innermost first."""
    spots: list[Spot] = []
    while len(spots) < _DEEP and (frame := places.user_frame(frame)) is not None:
        file = places.file_of(frame)
        if file is not None:
            spots.append(Spot(file, frame.f_lineno))
        frame = frame.f_back
    return tuple(spots)


def stepped_by_hand(
    way: tuple[Spot, ...], files: list[CodeFile], variables: Mapping[str, Any], owned: set[int]
) -> bool:
    """True if a text that may have run after some lines writes gradients into what may be a model's.

    Args:
        way: The lines, the innermost first.
        files: Code of the last cells.
        variables: The user's variables.
        owned: Addresses of the memory of the model.
    """
    if not any("grad" in file.code for file in (*files, *(spot.file for spot in way))):
        return False
    since = list(_since(way, files))
    texts = _Texts(since, _reached(since, files), list(_running(way[1:])))
    whole = (_Stretch(one, list(syntax.own_expressions(one))) for one in texts.inside)
    steps = ((stretch.scope, names) for stretch in (*since, *whole) for names in _stepped(stretch))
    return any(_judged(scope, names, texts, variables, owned) is not False for scope, names in steps)


# what ran -------------------------------------------------------------------


def _since(way: tuple[Spot, ...], files: list[CodeFile]) -> Iterator[_Stretch]:
    """What follows each of the lines in its scope, all of a loop around it, and the cells that came later."""
    for spot in way:
        if spot.file.tree is not None:
            scope = syntax.scope_at(spot.file.tree, spot.line)
            # The line of a call that led to the innermost one is not over.
            start = _end_of_call(scope, spot.line) if spot is way[0] else (spot.line + 1, 0)
            yield _Stretch(scope, _after(scope, start, spot.line))
    last = way[-1].file.cell if way else None
    for file in files:
        if file.tree is not None and last is not None and file.cell is not None and file.cell > last:
            yield _Stretch(file.tree, list(syntax.own_expressions(file.tree)))


def _running(way: tuple[Spot, ...]) -> Iterator[_Stretch]:
    for spot in way:
        if spot.file.tree is not None:
            scope = syntax.scope_at(spot.file.tree, spot.line)
            yield _Stretch(scope, [one for one in syntax.own_expressions(scope) if _place(one)[0] == spot.line])


def _end_of_call(scope: ast.AST, line: int) -> tuple[int, int]:
    """Where the last call of `state_dict()` ends that begins in a line; else where the line does."""
    calls = (one for one in syntax.own_expressions(scope) if isinstance(one, ast.Call) and one.lineno == line)
    ends = [(one.end_lineno or 0, one.end_col_offset or 0) for one in calls if "state_dict" in _names(one.func)]
    return max(ends, default=(line, 0))


def _after(scope: ast.AST, start: tuple[int, int], line: int) -> list[ast.AST]:
    own = list(syntax.own_expressions(scope))
    loops = [one for one in own if isinstance(one, syntax.LOOPS) and syntax.spans(one, line)]
    begin = min((loop.lineno for loop in loops), default=0)
    end = max((loop.end_lineno or 0 for loop in loops), default=-1)
    return [one for one in own if _place(one) >= start or begin <= _place(one)[0] <= end]


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _reached(since: list[_Stretch], files: list[CodeFile]) -> list[_Function]:
    """Functions that these texts name, or that those name which they name; Python itself calls `__init__`."""
    known = [one for file in files if file.tree is not None for one in syntax.functions_of(file.tree)][:_FUNCTIONS]
    named = {name for stretch in since for node in stretch.nodes for name in _names(node)}
    found: list[_Function] = []
    while new := [one for one in known if one.name in named or one.name.startswith("__")]:
        found += new
        known = [one for one in known if not any(one is other for other in new)]
        named = {name for one in new for node in syntax.own_expressions(one) for name in _names(node)}
    return found


def _names(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.Name):
        return (node.id,)
    return (node.attr,) if isinstance(node, ast.Attribute) else ()


# what it writes -------------------------------------------------------------


def _stepped(stretch: _Stretch) -> Iterator[set[str]]:
    """Names that tell what each step changes: `p -= lr * p.grad`, or the same in a loop over gradients."""
    for node in stretch.nodes:
        written = _written(node)
        if written is not None and any("grad" in ast.unparse(one) for one in written[1]):
            yield _with_loops(stretch.scope, syntax.names_in(written[0]))
        elif isinstance(node, ast.For) and "grad" in ast.unparse(node.iter):
            inner = [part for one in syntax.walk(node) if (part := _written(one)) is not None]
            if inner:
                yield syntax.names_in(node.iter).union(*(syntax.names_in(target) for target, _ in inner))


def _written(node: ast.AST) -> tuple[ast.expr, list[ast.expr]] | None:
    """What a statement or a call writes into, without giving it other memory, and what it writes."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Sub, ast.Add)):
        return node.target, [node.value]
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _WRITES:
        return None
    given = [*node.args, *(one.value for one in node.keywords)]
    several = node.func.attr.startswith("_foreach") and given
    return given[0] if several else node.func.value, given


def _with_loops(scope: ast.AST, names: set[str]) -> set[str]:
    """With the names in what loops go through that give these their values."""
    found = set(names)
    for node in syntax.own_expressions(scope):
        if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)) and names & syntax.names_in(node.target):
            found |= syntax.names_in(node.iter)
    return found


# whose it is ----------------------------------------------------------------


def _judged(scope: ast.AST, names: set[str], texts: _Texts, variables: Mapping[str, Any], owned: set[int]) -> Verdict:
    """Whether a step is one of the model: False if all that it names, or that its function is given, is another's."""

    def verdict(some: Iterable[str]) -> Verdict:
        return belonging([variables[one] for one in sorted(some) if one in variables], owned)

    told = verdict(names - _own(scope))
    if told is not None or not isinstance(scope, syntax.FUNCTIONS):
        return told
    given = _given(scope, texts)
    return verdict(given) if given is not None else None


def _own(scope: ast.AST) -> set[str]:
    """Names that a function gives a value itself."""
    inside = isinstance(scope, syntax.FUNCTIONS)
    return syntax.parameters_of(scope) | stores_in(scope).keys() if inside else set()


def _given(function: _Function, texts: _Texts) -> set[str] | None:
    """The variables that a function can get at: its own, and those of the calls that lead to it.

    None if it is called where a function has names of its own.
    """
    leading = _leading_to(function, texts.inside)
    called = {one.name for one in leading}
    of_python = any(name.startswith("__") for name in called)
    found = {name for one in leading for name in _variables(one)}
    for stretch in (*texts.since, *texts.led):
        calls = [one for one in stretch.nodes if isinstance(one, ast.Call)]
        mine = [one for one in calls if of_python or not called.isdisjoint(_names(one.func))]
        if mine and isinstance(stretch.scope, syntax.FUNCTIONS):
            return None
        found = found.union(*map(syntax.names_in, mine))
    return found


def _variables(function: _Function) -> set[str]:
    return {one.id for one in syntax.own_expressions(function) if isinstance(one, ast.Name)} - _own(function)


def _leading_to(function: _Function, inside: list[_Function]) -> list[_Function]:
    """It, and those that name it, or that name which does."""
    found = new = [function]
    while new:
        names = {one.name for one in new}
        new = [
            one for one in inside if one not in found and any(names & {*_names(n)} for n in syntax.own_expressions(one))
        ]
        found = [*found, *new]
    return found
