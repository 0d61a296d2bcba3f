"""What hooks keep of their last call in containers that its code does not read and no variable leads to.

The text says that the code around a hook only ever stores into a container; a search from the variables, past the
registries of hooks, says which of the tensors in it nothing else leads to.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from torch_inspector.facts import syntax
from torch_inspector.observe import kinds
from torch_inspector.observe.definitions import definition
from torch_inspector.observe.naming import names_of
from torch_inspector.observe.turns import last_name

if TYPE_CHECKING:
    from torch_inspector.observe.hooked import Root
    from torch_inspector.observe.place import Places


# Members of a class with code of their own.
_CODE = (property, staticmethod, classmethod, functools.cached_property, functools.partialmethod)


def is_unread(function: Any, root: Root, places: Places) -> bool:
    """True if the code of a hook, and of the class that it belongs to, only stores into a container.

    Args:
        function: The hook: a method, or a function with the container around it.
        root: The container, and the object that has it.
        places: The texts of the cells.
    """
    name = root.attribute or root.label
    nodes = [_text_of(code, places) for code in _codes(function, root) if root.owner is None or name in names_of(code)]
    return bool(nodes) and all(
        node is not None and _only_stores(node, name) and (root.owner is not None or _is_left(function, name, places))
        for node in nodes
    )


def _codes(function: Any, root: Root) -> Iterator[CodeType]:
    """Code that can get at the container: of the function, or of all methods of its object; none if it is not known."""
    if type(function) is MethodType and root.owner is function.__self__:
        kind = type(root.owner)
        if kinds.module_of(kind) == "__main__" and not _has_other_code(kind):
            yield from kinds.methods_of(kind)
    elif type(function) is FunctionType and root.owner is None and function.__module__ == "__main__":
        yield function.__code__


def _has_other_code(kind: type[Any]) -> bool:
    """True for a class with properties, static methods and the like, whose code is not looked at."""
    own = [base for base in kinds.mro_of(kind) if kinds.module_of(base).partition(".")[0] not in ("torch", "builtins")]
    return any(kinds.is_one_of(value, _CODE) for base in own for value in list(kinds.class_fields(base).values()))


def _is_left(function: FunctionType, name: str, places: Places) -> bool:
    """True if the functions around a hook name the container only to make it, and end once the hook is registered."""
    file, own = places.file_of_code(function.__code__), _text_of(function.__code__, places)
    tree = file.tree if file is not None else None
    inside = set(map(id, syntax.walk(own))) if own is not None else set[int]()
    for node in syntax.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node is not own and any(one is own for one in syntax.walk(node)):
            named = (one for one in syntax.walk(node) if isinstance(one, ast.Name) and one.id == name)
            if any(isinstance(one.ctx, ast.Load) and id(one) not in inside for one in named) or _goes_on(node, own):
                return False
    return True


def _goes_on(function: ast.FunctionDef, hook: ast.AST | None) -> bool:
    """True if anything but `return` comes after the statement that makes or registers a hook."""
    at = [index for index, one in enumerate(function.body) if any(_is_about(part, hook) for part in syntax.walk(one))]
    return any(not isinstance(one, ast.Return) for one in function.body[at[-1] + 1 if at else 0 :])


def _is_about(node: ast.AST, hook: ast.AST | None) -> bool:
    return node is hook or (isinstance(node, ast.Attribute) and node.attr.startswith("register_"))


def _text_of(code: CodeType, places: Places) -> ast.AST | None:
    """The definition of a function in the text of its cell."""
    tree = places.tree_of(code)
    return definition(tree, code) if tree is not None else None


def _only_stores(node: ast.AST, name: str) -> bool:
    """True if a function names a container only to give it an element, or to make it anew."""
    nodes = list(syntax.walk(node))
    stored = {id(one.value) for one in nodes if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store)}
    named = (one for one in nodes if isinstance(one, (ast.Name, ast.Attribute)) and last_name(one) == name)
    return all(id(one) in stored or isinstance(one.ctx, ast.Store) for one in named)
