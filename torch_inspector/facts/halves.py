"""A tensor that is made once without its history and goes into two losses: the first is to leave its maker alone."""

from __future__ import annotations

import ast

from torch_inspector.facts import syntax

_Statement = ast.Assign | ast.AugAssign | ast.Expr


def kept_apart(source: str, line: int | None) -> str:
    """The lines as they read where only the first of two losses goes without the history; empty for other texts.

    Args:
        source: The text of the cell.
        line: Of `fake = G(z).detach()`, or of the `with torch.no_grad():` around it.
    """
    tree = syntax.parse(source)
    made = _made_at(tree, line) if tree is not None else None
    if tree is None or made is None:
        return ""
    name, value = made
    before, again = _halves(syntax.scope_at(tree, line or 0), name, line or 0)
    if not before or not again:
        return ""
    first = f"{name} = {ast.unparse(value)}"
    others = [f"{_without_history(one, name)}  # line {one.lineno}" for one in before]
    return "\n".join((f"{first}  # line {line}", *others))


def _made_at(tree: ast.Module, line: int | None) -> tuple[str, ast.expr] | None:
    """The name that is given a value in a line, and that value with its history."""
    for node in syntax.walk(tree):
        if not isinstance(node, (ast.With, ast.Assign)) or node.lineno != line:
            continue
        inside = node.body[0] if isinstance(node, ast.With) and len(node.body) == 1 else node
        target = inside.targets[0] if isinstance(inside, ast.Assign) else None
        if isinstance(inside, ast.Assign) and isinstance(target, ast.Name):
            value = inside.value if inside is not node else syntax.attached(inside.value)
            return (target.id, value) if value is not None else None
    return None


def _halves(scope: ast.AST, name: str, line: int) -> tuple[list[_Statement], bool]:
    """What uses a name after its line up to the first `backward()`, and whether something does up to the second."""
    found = (one for one in syntax.walk(scope) if isinstance(one, _Statement) and one.lineno > line)
    below = sorted(found, key=lambda one: one.lineno)
    ends = [index + 1 for index, one in enumerate(below) if _differentiates(one)]
    if len(ends) < 2:  # noqa: PLR2004
        return [], False
    users = [one for one in below[: ends[0]] if _uses(one, name)]
    again = any(_uses(one, name) for one in below[ends[0] : ends[1]])
    return [one for one in users if _differentiates(one) or not isinstance(one, ast.Expr)], again


def _uses(statement: ast.AST, name: str) -> bool:
    nodes = (node for node in syntax.walk(statement) if isinstance(node, ast.Name))
    return any(node.id == name and isinstance(node.ctx, ast.Load) for node in nodes)


def _differentiates(statement: ast.AST) -> bool:
    calls = (node.func for node in syntax.walk(statement) if isinstance(node, ast.Call))
    return any(isinstance(func, ast.Attribute) and func.attr == "backward" for func in calls)


class _Detaching(ast.NodeTransformer):
    """Puts `name.detach()` where there is `name`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Leaves `name.detach` as it is."""
        own = isinstance(node.value, ast.Name) and node.value.id == self._name and node.attr in ("detach", "data")
        return node if own else self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """The name without its history."""
        own = node.id == self._name and isinstance(node.ctx, ast.Load)
        return ast.Call(ast.Attribute(node, "detach", ast.Load()), [], []) if own else node


def _without_history(statement: _Statement, name: str) -> str:
    return ast.unparse(_Detaching(name).visit(ast.parse(ast.unparse(statement))))
