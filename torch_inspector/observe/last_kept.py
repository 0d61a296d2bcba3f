"""What hooks keep of their last call in containers that no code reads and that no variable leads to.

The text says that the code around a hook only ever stores into a container; a search from the variables, past the
registries of hooks, says which of the tensors in it nothing else leads to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from torch_inspector.facts import syntax
from torch_inspector.observe import kinds
from torch_inspector.observe.naming import names_of
from torch_inspector.observe.source import dotted

if TYPE_CHECKING:
    from torch_inspector.observe.hooked import Root
    from torch_inspector.observe.place import Places


def is_unread(function: Any, root: Root, places: Places) -> bool:
    """True if the code of a hook, and of the class that it belongs to, only stores into a container.

    Args:
        function: The hook: a method, or a function with the container around it.
        root: The container, and the object that has it.
        places: The texts of the cells.
    """
    name = root.attribute or root.label
    nodes = [_node_of(code, places) for code in _codes(function, root) if root.owner is None or name in names_of(code)]
    return bool(nodes) and all(node is not None and _only_stores(node, name) for node in nodes)


def _codes(function: Any, root: Root) -> Iterator[CodeType]:
    """Code that can get at the container: of the function, or of all methods of its object; none if it is not known."""
    if type(function) is MethodType and root.owner is function.__self__:
        kind = type(root.owner)
        if kinds.module_of(kind) == "__main__":
            yield from kinds.methods_of(kind)
    elif type(function) is FunctionType and root.owner is None and function.__module__ == "__main__":
        yield function.__code__


def _node_of(code: CodeType, places: Places) -> ast.AST | None:
    """The definition of a function in the text of its cell."""
    file = places.file_of_code(code)
    for node in syntax.walk(file.tree) if file is not None and file.tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = node.decorator_list[0] if node.decorator_list else node
            if first.lineno == code.co_firstlineno:
                return node
    return None


def _only_stores(node: ast.AST, name: str) -> bool:
    """True if a function names a container only to give it an element, or to make it anew."""
    nodes = list(syntax.walk(node))
    stored = {id(one.value) for one in nodes if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store)}
    named = (one for one in nodes if isinstance(one, (ast.Name, ast.Attribute)) and _end(one) == name)
    return all(id(one) in stored or isinstance(one.ctx, ast.Store) for one in named)


def _end(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else dotted(node)
