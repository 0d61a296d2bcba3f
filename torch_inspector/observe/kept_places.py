"""What a path in the text of a method, a function or a cell leads to: the objects that `self` may stand for there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from torch_inspector.facts import syntax
from torch_inspector.observe.anchored import Use
from torch_inspector.observe.kinds import class_name, fields_of, module_of, mro_of, name_of
from torch_inspector.observe.operands import Names
from torch_inspector.observe.statements import stores_in

# Variables looked at, and fields of each.
_VARIABLES, _FIELDS = 2_000, 64


def holders_of(use: Use, names: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Paths of the objects that `self` may be where the expression stands, each with what its names mean there.

    One of no path where no `self` is needed; none where a name is one of the function's own.
    """
    roots = {syntax.root_of(use.kept), syntax.root_of(use.model)}
    kind, own = _class_around(use.scope, use.file.tree)
    if kind and own in roots:
        inside = roots - {own}
        found = _objects(names, kind) if not _are_own(use.scope, inside) else ()
        yield from ((path, {own: value}) for path, value in found)
    elif not _are_own(use.scope, roots):
        yield "", {}


def value_at(path: ast.expr, holder: Mapping[str, Any], names: Mapping[str, Any]) -> Any:
    """A live object, or `UNKNOWN`."""
    return Names(holder, names).value(path)


def path_at(path: ast.expr, holder: str, own: str) -> str:
    """A path as it can be typed in the notebook."""
    text = ast.unparse(path)
    return f"{holder}{text.removeprefix(own)}" if holder and text.startswith(f"{own}.") else text


def own_name(use: Use) -> str:
    """What the method around an expression calls its object."""
    return _class_around(use.scope, use.file.tree)[1]


def _class_around(scope: ast.AST, tree: ast.Module | None) -> tuple[str, str]:
    """The class that a method stands in, and what it calls its object."""
    parent = syntax.parents(tree).get(id(scope)) if tree is not None else None
    given = [one.arg for one in scope.args.args] if isinstance(scope, ast.FunctionDef) else []
    return (parent.name, given[0]) if isinstance(parent, ast.ClassDef) and given else ("", "")


def _are_own(scope: ast.AST, roots: set[str]) -> bool:
    """True if a function makes one of these names, or is given it."""
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    outer = {name for one in syntax.walk(scope) if isinstance(one, ast.Global) for name in one.names}
    return bool(roots & ((syntax.parameters_of(scope) | stores_in(scope).keys()) - outer))


def _objects(names: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Any]]:
    """Variables of a class of the notebook, and fields of such."""
    for name, value in islice(list(names.items()), _VARIABLES):
        if name.startswith("_") or module_of(type(value)) != "__main__":
            continue
        if _is_of(value, kind):
            yield name, value
        for field, one in islice(list(fields_of(value).items()), _FIELDS):
            if module_of(type(one)) == "__main__" and _is_of(one, kind):
                yield f"{name}.{field}", one


def _is_of(value: Any, kind: str) -> bool:
    return class_name(value) == kind or any(name_of(one) == kind for one in mro_of(type(value)))
