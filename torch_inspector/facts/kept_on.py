"""Lists that each turn adds to, and that still hold what the turns before have differentiated."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.errors import ErrorFact, RefusalFact
    from torch_inspector.facts.graphs import BackwardFact
    from torch_inspector.facts.run import Run

_ADDS = frozenset(["append", "extend", "insert", "appendleft"])


class KeptOn(NamedTuple):
    """One list, and those that are collected along with it."""

    path: str
    beside: tuple[str, ...]

    def told(self, root: str) -> tuple[str, str, str]:
        """What happened, what it is about, and the statements that empty all of them."""
        message = (
            f"`{root}` was computed from `{self.path}`, which still holds what the turn before had added: "
            "the backward() call of that turn had freed its graph."
        )
        emptied = "; ".join(f"{one}.clear()" for one in (self.path, *self.beside))
        return message, self.path, f"{emptied}  # at the end of each turn, after the step"


def kept_on(run: Run, error: ErrorFact, refusal: RefusalFact, before: BackwardFact | None) -> KeptOn | None:
    """The list behind what was refused, if the same line has differentiated its first part in an earlier turn."""
    old = next(iter((*refusal.carried, *refusal.olds)), None)
    if old is None or not old.added_to or refusal.is_old or before is None or before.place != error.place:
        return None
    tree, path = syntax.parse(run.source_of(error.place.cell)), old.added_to
    if tree is None:
        return KeptOn(path, ())
    made, owner = _made_each_turn(run, error, tree), path.rpartition(".")[0]
    read = (one for one in _read_in(syntax.scope_at(tree, error.place.line or 0)) if one not in (path, *made))
    near = [one for one in read if one.rpartition(".")[0] == owner]
    here = _turn(tree, run.source_of(error.place.cell), error.place.line or 0)
    # What only grows where the losses are differentiated has one entry for each of these: a history, which is to stay.
    if any(one is here for one in _growing(run, path)):
        return KeptOn(path, tuple(one for one in near if any(_growing(run, one))))
    return KeptOn(path, tuple(one for one in near if any(turn is not here for turn in _growing(run, one))))


def _read_in(scope: ast.AST) -> dict[str, None]:
    """Variables and fields that a scope reads, except to add to them, in the order of the text."""
    nodes = [one for one in syntax.own_expressions(scope) if isinstance(one, (ast.Name, ast.Attribute))]
    added = {id(one.value) for one in nodes if isinstance(one, ast.Attribute) and one.attr in _ADDS}
    plain = [one for one in nodes if isinstance(one.ctx, ast.Load) and id(one) not in added]
    plain.sort(key=lambda one: (one.lineno, one.col_offset))
    return dict.fromkeys(ast.unparse(one) for one in plain)


def _made_each_turn(run: Run, error: ErrorFact, tree: ast.Module) -> set[str]:
    """Variables to which the loop around the error, or its function where that has none, gives a value."""
    line = error.place.line or 0
    turn = _turn(tree, run.source_of(error.place.cell), line)
    stored = (one for one in syntax.walk(turn) if isinstance(getattr(one, "ctx", None), ast.Store))
    return {ast.unparse(one) for one in stored} if turn is not tree else set()


def _turn(tree: ast.Module, source: str, line: int) -> ast.AST:
    """The loop that a line stands in, or its function where that has none around it."""
    scope, loop = syntax.scope_at(tree, line), syntax.loop_around(source, line)
    return loop if loop is not None and loop.lineno > getattr(scope, "lineno", 0) else scope


def _growing(run: Run, path: str) -> Iterator[ast.AST]:
    """The loops or functions in which a text adds to a variable, or to a field, of this name."""
    field = f".{path.rpartition('.')[2]}" if "." in path else ""
    for source in {past.cell.source: None for past in (run, *run.earlier)}:
        tree = syntax.parse(source)
        for one in syntax.walk(tree) if tree is not None else ():
            if isinstance(one, ast.Attribute) and one.attr in _ADDS and tree is not None:
                added = ast.unparse(one.value)
                if added == path or (field and added.endswith(field)):
                    yield _turn(tree, source, one.lineno)
