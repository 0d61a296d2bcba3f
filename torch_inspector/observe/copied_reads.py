"""Where another method reads an attribute that a method writes into: the read that wants a copy."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.observe.place import CodeFile

# A longer statement is no help as a correction.
_LONGEST = 100


def same_attribute(path: str, names: set[str]) -> bool:
    """True for `self.queue` in a method, where the frames that are left call it `moco.queue`."""
    last = path.rpartition(".")[2]
    return path.startswith("self.") and any("." in one and one.rpartition(".")[2] == last for one in names)


def read_copied(file: CodeFile, path: str, line: int) -> str:
    """The only statement of another function that computes with `path`, with a copy of it; else empty.

    Args:
        file: The cell with the statement that writes.
        path: What it writes into: `self.queue`.
        line: Where it writes.
    """
    nodes = syntax.walk(file.tree) if file.tree is not None else ()
    functions = [node for node in nodes if isinstance(node, syntax.FUNCTIONS) and not syntax.spans(node, line)]
    found = [one for node in functions for one in syntax.own_statements(node) if _computes(one, path)]
    if len(found) != 1:
        return ""
    text = ast.unparse(_Copied(path).visit(ast.parse(ast.unparse(found[0]))))
    return f"{text}  # line {found[0].lineno + file.offset}" if len(text) <= _LONGEST and "\n" not in text else ""


def _computes(statement: ast.stmt, path: str) -> bool:
    """True for a plain statement in which the whole tensor, or its transpose, is an operand or is given to a call."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.Return)) else None
    nodes = syntax.walk(value) if value is not None else ()
    parts = [part for node in nodes if isinstance(node, (ast.BinOp, ast.Call)) for part in syntax.children(node)]
    return any(ast.unparse(part) in (path, f"{path}.T", f"{path}.t()") for part in parts)


class _Copied(ast.NodeTransformer):
    """Puts `.clone()` behind what is read under a path."""

    def __init__(self, path: str) -> None:
        self._path = path

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if ast.unparse(node) != self._path or not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        return ast.Call(ast.Attribute(node, "clone", ast.Load()), [], [])
