"""Values that share memory with what steps change, and are handed on or looked at before any step, and never after."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.leading import Leading, leading_to

if TYPE_CHECKING:
    from torch_inspector.facts.modules import AliasFact
    from torch_inspector.facts.run import Run

# What puts a value by, or makes another dictionary of the same tensors.
_KEEPS = frozenset(
    [
        "append",
        "appendleft",
        "extend",
        "add",
        "update",
        "insert",
        "setdefault",
        "put",
        "setattr",
        "dict",
        "list",
        "copy",
    ]
)
# Where the value goes that one gives back no line tells.
_LAMBDA = "<lambda>"
_BLOCKS = ("body", "orelse", "finalbody")
_HOLDS = (ast.Dict, ast.Tuple, ast.List, ast.keyword, ast.Starred, ast.IfExp)


class _Text(NamedTuple):
    """A cell, and where steps are made in it: at lines, and by calls."""

    tree: ast.Module
    lines: frozenset[int]
    leading: Leading
    by_hand: bool

    def goes_on(self, statement: ast.stmt) -> bool:
        """True if a statement makes no step when it runs."""
        if isinstance(statement, syntax.INNER):
            return True
        if self.by_hand and "grad" in ast.unparse(statement):
            return False
        called = any(map(self.leading.named_in, syntax.walk(statement)))
        return not called and not any(syntax.spans(statement, line) for line in self.lines)


def is_read_first(run: Run, one: AliasFact) -> bool:
    """True if the text uses a state after it was taken, before any statement that makes steps, and not below that."""
    texts = list(_texts(run, one)) if one.place.function != _LAMBDA else []
    taken = _taken_in(texts[0].tree, one) if texts else None
    if taken is None:
        return False
    names = {ast.unparse(syntax.whole_of(target)) for target in syntax.targets_of(taken)}
    used, stepped = False, False
    for text in texts if not one.place.function else texts[:1]:
        first = text is texts[0]
        after = list(_following(text.tree, taken)) if first else text.tree.body
        before = [] if stepped else list(takewhile(text.goes_on, after))
        used = used or any(_uses(each, names, text.tree) for each in before)
        stepped = stepped or len(before) < len(after)
        end = max(map(_end, [*before, *([taken] if first else [])]), default=(0, 0))
        scope = syntax.scope_at(text.tree, taken.lineno) if first else text.tree
        turns = [each for each in syntax.own_statements(scope) if first and _is_loop_around(each, taken)]
        named = [
            each for each in syntax.own_expressions(scope) if isinstance(each, ast.expr) and _is_named(each, names)
        ]
        if stepped and any(_start(each) > end or _is_before(each, taken, turns) for each in named):
            return False
    return used


def _texts(run: Run, one: AliasFact) -> Iterator[_Text]:
    """The cell that took the state, and the later ones, oldest first."""
    cells = [past.cell.number for past in (*run.earlier, run) if (past.cell.number or 0) >= (one.place.cell or 0)]
    places = {step.place for past in (*run.earlier, run) for step in past.trace.steps}
    every = [tree for past in (*run.earlier, run) if (tree := syntax.parse(past.cell.source)) is not None]
    written = [
        each.name for tree in every if one.by_hand for each in syntax.functions_of(tree) if _is_of_gradients(each)
    ]
    leading = leading_to([*(place.function for place in places), *written], every)
    for number in dict.fromkeys(cells):
        tree = syntax.parse(run.source_of(number))
        if tree is not None:
            lines = frozenset(place.line for place in places if place.cell == number and place.line is not None)
            yield _Text(tree, lines, leading, one.by_hand)


def _is_of_gradients(function: ast.AST) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == "grad" for one in syntax.walk(function))


def _taken_in(tree: ast.Module, one: AliasFact) -> ast.stmt | None:
    """The assignment of the line that asks for the state; of several, that of the same name."""
    kinds = (ast.Assign, ast.AnnAssign)
    own = [each for each in syntax.walk(tree) if isinstance(each, kinds) and syntax.spans(each, one.place.line or 0)]
    asked = [each for each in own if any(getattr(part, "attr", "") == "state_dict" for part in syntax.walk(each))]
    named = [each for each in asked if any(_last(target) in one.path for target in syntax.targets_of(each))]
    return next(iter(named or asked), None)


def _last(target: ast.expr) -> str:
    return syntax.name_of(syntax.whole_of(target)) or " "


def _following(tree: ast.Module, statement: ast.stmt) -> Iterator[ast.stmt]:
    """What comes after a statement in its block, and in the blocks around it up to a loop or the function's end."""
    around = syntax.parents(tree)
    node: ast.AST | None = statement
    while node is not None and not isinstance(node, (*syntax.INNER, *syntax.LOOPS, ast.Module)):
        parent = around.get(id(node))
        blocks = (getattr(parent, name, ()) for name in _BLOCKS)
        block = next((list(one) for one in blocks if isinstance(one, list) and node in one), [])
        yield from block[block.index(node) + 1 :] if block else ()
        node = parent


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.stmt) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0


def _is_loop_around(loop: ast.stmt, statement: ast.stmt) -> bool:
    return isinstance(loop, syntax.LOOPS) and syntax.spans(loop, statement.lineno)


def _is_before(node: ast.expr, statement: ast.stmt, loops: list[ast.stmt]) -> bool:
    """True for what stands above a statement in a loop around it: the next turn comes there."""
    return node.lineno < statement.lineno and any(syntax.spans(loop, node.lineno) for loop in loops)


# reads ----------------------------------------------------------------------


def _is_named(node: ast.AST, names: set[str]) -> bool:
    loaded = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
    return loaded and ast.unparse(node) in names


def _uses(statement: ast.stmt, names: set[str], tree: ast.Module) -> bool:
    if isinstance(statement, syntax.INNER):
        return False
    around = syntax.parents(tree)
    return any(_is_named(one, names) and _is_used(one, around) for one in syntax.walk(statement))


def _is_used(node: ast.AST, around: dict[int, ast.AST]) -> bool:
    """True for what is written, loaded elsewhere, shown or gone through; not for what is given another name."""
    parent = around[id(node)]
    while isinstance(parent, (*_HOLDS, ast.Attribute, ast.Subscript)):
        node, parent = parent, around[id(parent)]
    if isinstance(parent, ast.Call):
        name = syntax.name_of(parent.func)
        return name not in _KEEPS and (parent.func is node or not name[:1].isupper())
    return not isinstance(parent, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Yield, ast.NamedExpr))
