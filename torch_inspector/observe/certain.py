"""Which parts of a loop every turn comes to, whatever is tested in it."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from torch_inspector.facts import syntax

_PARTS = (ast.Subscript, ast.Call, ast.Name, ast.Attribute)


def certain(loop: ast.AST) -> frozenset[str]:
    """Texts of the indexed parts, calls and names that each turn comes to; none if it may go on to the next one."""
    if any(isinstance(one, ast.Continue) for one in syntax.walk(loop)):
        return frozenset(_texts(getattr(loop, "iter", None)))
    return frozenset(_texts(loop))


def _texts(node: ast.AST | list[ast.stmt] | None) -> set[str]:
    """The same for one part: of branches only what all of them have, of `a and b` only the first."""
    if isinstance(node, (ast.If, ast.IfExp)):
        return _texts(node.test) | (_texts(node.body) & _texts(node.orelse))
    own = {ast.unparse(node)} if isinstance(node, _PARTS) else set[str]()
    return own.union(*map(_texts, _surely(node)))


def _surely(node: ast.AST | list[ast.stmt] | None) -> Iterable[ast.AST]:
    """The parts of a part that are come to whenever it is."""
    if node is None or isinstance(node, list):
        return node or ()
    if isinstance(node, ast.BoolOp):
        return node.values[:1]
    if isinstance(node, ast.comprehension):
        return [node.iter]
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and any(one.ifs for one in node.generators):
        return [node.generators[0].iter]
    return syntax.children(node)
