"""Whether an attribute had, where a cell reads it, the value that it has when the cell is done."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.untested import end_of, parents_of, position


def is_kept(scope: Scope, read: ast.Attribute) -> bool:
    """False if any text gives an attribute of that name a value while the cell runs, except before it is read.

    What a constructor gives is there before any method reads it, and what an earlier cell gives, before this one runs.
    """
    now, at = scope.reading.file.tree, _at_top(scope, read)
    files = (scope.reading.file, scope.file, *scope.reading.places.latest())
    trees = list({id(file.tree): file.tree for file in files if file.tree is not None}.values())
    for tree in trees:
        for store in _stores(tree, read.attr):
            function = syntax.function_around(tree, store.lineno)  # type: ignore[attr-defined]
            if function is None:
                if tree is now and not _is_before(tree, store, at):
                    return False
            elif function.name != "__init__" and _may_run(function.name, trees, now):
                return False
    return True


def _at_top(scope: Scope, read: ast.AST) -> ast.AST:
    """What the text of the cell itself has for something that is read: the call of the function around it."""
    while scope.caller is not None and scope.call is not None:
        read, scope = scope.call, scope.caller
    return read


def _stores(tree: ast.Module, attribute: str) -> Iterator[ast.AST]:
    for node in syntax.walk(tree):
        if isinstance(node, ast.Attribute):
            yield from (node,) if node.attr == attribute and not isinstance(node.ctx, ast.Load) else ()
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr":
            yield node


def _is_before(tree: ast.Module, store: ast.AST, read: ast.AST) -> bool:
    """True if a statement of the cell has run for the last time when something is read."""
    ends = [end_of(parent) for _, parent in parents_of(tree, store) if isinstance(parent, syntax.LOOPS)]
    return position(store) < position(read) and all(end <= position(read) for end in ends)


def _may_run(name: str, trees: list[ast.Module], now: ast.Module | None) -> bool:
    """True for a function that the cell names, or another function, and for those that Python calls by itself."""
    functions = (one for tree in trees for one in syntax.walk(tree) if isinstance(one, ast.FunctionDef))
    texts = (*((now,) if now is not None else ()), *functions)
    return name.startswith("__") or any(syntax.name_of(node) == name for text in texts for node in syntax.walk(text))
