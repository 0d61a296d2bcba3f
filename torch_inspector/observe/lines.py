"""Lines of a cell that did something to a variable, and names on a line, found in its text."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.observe.source import KEEPS, dotted

Loop = ast.For | ast.AsyncFor | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def assignment_line(tree: ast.AST, name: str, before: int) -> int | None:
    """The last line up to `before` that gives a variable its value, in the innermost function around `before`."""
    scope = _scope_at(tree, before)
    lines = [node.lineno for node in _own_nodes(scope) if _assigns(node, name) and node.lineno <= before]
    return max(lines, default=None)


def _scope_at(tree: ast.AST, line: int) -> ast.AST:
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    around = [n for n in functions if n.lineno <= line <= (n.end_lineno or n.lineno)]
    return max(around, key=lambda n: n.lineno, default=tree)


def _own_nodes(scope: ast.AST) -> Iterator[ast.stmt]:
    """Statements of a scope without those of functions inside it."""
    stack: list[ast.AST] = list(ast.iter_child_nodes(scope))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            stack.extend(ast.iter_child_nodes(node))


def _assigns(node: ast.stmt, name: str) -> bool:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    return any(isinstance(n, ast.Name) and n.id == name for target in targets for n in ast.walk(target))


def growth_line(tree: ast.AST, path: str) -> int | None:
    """The last line that appends to a container, assigns into it, or adds to a variable."""
    lines = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.Call) and _grows(node, path)]
    return max(lines, default=None)


def _grows(node: ast.AST, path: str) -> bool:
    if isinstance(node, ast.AugAssign):
        return _unparse(node.target) == path
    if isinstance(node, ast.Assign):
        return any(
            _unparse(t) == path or (isinstance(t, ast.Subscript) and _unparse(t.value) == path) for t in node.targets
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in KEEPS:
        return _unparse(node.func.value) == path
    return False


def _unparse(node: ast.AST) -> str:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) else ""


def subtracted_names(tree: ast.AST, line: int) -> frozenset[str]:
    """Plain names on either side of a minus in the function (or cell) around a line."""
    names: set[str] = set()
    for node in ast.walk(_scope_at(tree, line)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            names.update(n.id for n in (node.left, node.right) if isinstance(n, ast.Name))
    return frozenset(names)


def names_on_line(tree: ast.AST, line: int) -> tuple[str, ...]:
    """Dotted names that the statement around a line reads, longest first: `self.grid`, `self.scale`, `x`."""
    statements = [
        n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or n.lineno)
    ]
    if not statements:
        return ()
    innermost = max(statements, key=lambda n: n.lineno)
    parts = [n for n in ast.walk(innermost) if hasattr(n, "lineno")]
    names = {dotted(n) for n in parts if isinstance(n, ast.Attribute | ast.Name)} - {""}
    return tuple(sorted(names, key=lambda name: (-name.count("."), name)))


def repeats_input(tree: ast.AST, line: int) -> bool:
    """True if a call on this line sits in a loop that binds none of the names which the call is given.

    `[net(x) for _ in range(50)]` samples the same input; `[net(x) for x in batches]` does not.
    """
    for loop in (n for n in ast.walk(tree) if isinstance(n, Loop)):
        if not loop.lineno <= line <= (loop.end_lineno or loop.lineno):
            continue
        bound = bound_in(loop)
        calls = [n for n in ast.walk(loop) if isinstance(n, ast.Call) and n.lineno == line and n.args]
        given = [
            {m.id for a in c.args for m in ast.walk(a) if isinstance(m, ast.Name)} for c in calls if not _makes_new(c)
        ]
        if any(names and not names & bound for names in given):
            return True
    return False


def _makes_new(call: ast.Call) -> bool:
    """True if an argument is itself the result of a call: `net(torch.randn(5, 3))` is given something new each time."""
    return any(isinstance(n, ast.Call) for argument in call.args for n in ast.walk(argument))


def bound_in(loop: ast.AST) -> set[str]:
    """Names that a loop gives a value."""
    stored = (n for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return {n.id for n in stored}
