"""Changes through `.data` between a forward pass and its backward pass, found in the text of a cell."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import DataEditFact, syntax
from torch_inspector.observe.copying import _FUNCTIONS, _behind, _differentiated, _loaded
from torch_inspector.observe.own_results import changed_results
from torch_inspector.observe.source import dotted

_LONGEST = 80


def data_edits(tree: ast.Module, offset: int) -> tuple[DataEditFact, ...]:
    """All such changes, by line."""
    scopes = [tree, *(n for n in syntax.walk(tree) if isinstance(n, _FUNCTIONS))]
    found = {fact.line: fact for scope in scopes for fact in _in_scope(scope, offset, tree)}
    return tuple(found[line] for line in sorted(found))


def _in_scope(scope: ast.AST, offset: int, tree: ast.Module) -> Iterator[DataEditFact]:
    statements = sorted(syntax.own_statements(scope), key=lambda s: s.lineno)
    paths = [(path, s) for s in statements if (path := _edited(s))]
    edits = [(path, s, _owners(path, s, statements), _last_store(path, s, statements)) for path, s in paths]
    for end, root in _differentiated(statements) if edits else ():
        read = [(s.lineno, _loaded(s)) for s in _behind(statements, root, end) if s is not end]
        for path, edit, owners, stored in edits:
            # What was read before the name was given again is another tensor.
            lines = [(line, owner) for line, names in read for owner in owners if owner in names and line > stored]
            # The pass that uses it begins with the first line that reads it.
            if lines and min(lines)[0] < edit.lineno < end.lineno:
                text = " ".join(ast.unparse(edit).split())[:_LONGEST]
                line, owner = min(lines)
                where = edit.lineno + offset, text, getattr(scope, "name", ""), owner
                yield DataEditFact(path, *where, line + offset, end.lineno + offset)
        later = [*read, (end.lineno, _loaded(root))]
        for name, change, made, function in changed_results(paths, statements, later) if scope is tree else ():
            shown, at = " ".join(ast.unparse(change).split())[:_LONGEST], made.lineno + offset
            yield DataEditFact(name, change.lineno + offset, shown, "", name, at, end.lineno + offset, function)


def _last_store(path: str, edit: ast.stmt, statements: list[ast.stmt]) -> int:
    """The last line before a change that gives the name a new value; 0 if none does."""
    lines = [s.lineno for s in statements if isinstance(s, ast.Assign) and s.lineno < edit.lineno and _stores(s, path)]
    return max(lines, default=0)


def _stores(statement: ast.Assign, path: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == path for target in statement.targets)


def _edited(statement: ast.stmt) -> str:
    """The tensor whose `.data` a statement changes; empty if it changes none, or a gradient."""
    if isinstance(statement, ast.AugAssign):
        path = _data_of(statement.target)
    elif isinstance(statement, ast.Assign):
        path = _data_of(statement.targets[0])
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        path = _called_on(statement.value)
    else:
        path = ""
    return "" if path.endswith("grad") else path


def _data_of(node: ast.AST) -> str:
    """`w` for `w.data`, `w.data[0]`."""
    node = syntax.whole_of(node)
    if not isinstance(node, ast.Attribute) or node.attr != "data":
        return ""
    return ast.unparse(node.value) if syntax.root_of(node.value) else ""


def _called_on(call: ast.Call) -> str:
    """`w` for `w.data.mul_(2)` and `w.data.mul_(2).add_(1)`."""
    node: ast.AST = call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if not node.func.attr.endswith("_") or node.func.attr.endswith("__"):
            return ""
        node = node.func.value
    return _data_of(node)


def _owners(path: str, edit: ast.stmt, statements: list[ast.stmt]) -> set[str]:
    """Names under which a forward pass reads it: `net.fc`, `net` for `net.fc.weight`; `net` for its parameter `p`."""
    parts = path.partition("[")[0].split(".")
    owners = {".".join(parts[:count]) for count in range(1, len(parts) + 1)} - {"self"}
    for loop in statements:
        if isinstance(loop, ast.For) and loop.lineno < edit.lineno <= (loop.end_lineno or 0):
            owners |= _gone_through(loop, parts[0])
    return owners


def _gone_through(loop: ast.For, name: str) -> set[str]:
    """`net` for the `p` of `for p in net.parameters()`, and of the one place in `zip` that belongs to it."""
    if isinstance(loop.target, ast.Name):
        return _base(loop.iter) if loop.target.id == name else set()
    targets = [dotted(n) for n in loop.target.elts] if isinstance(loop.target, ast.Tuple) else []
    if name not in targets:
        return set()
    zipped = isinstance(loop.iter, ast.Call) and dotted(loop.iter.func) == "zip" and loop.iter.args
    return _base(zipped[targets.index(name)]) if zipped and len(zipped) == len(targets) else _base(loop.iter)


def _base(node: ast.AST) -> set[str]:
    """`net` for `net.parameters()`, `net.fc` for `net.fc.named_parameters()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        path = dotted(node.func.value)
        return {path} if path and path != "self" else set()
    return set()
