"""Parts of a model that a method of its class uses which has nothing to do with a cut: another loss may train them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from torch_inspector.facts import Place, syntax
from torch_inspector.observe.place import CodeFile

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_used_apart(place: Place, name: str, files: Iterable[CodeFile]) -> bool:
    """True if a method uses the part of this name and neither calls the method of the line nor is called there."""
    for file in files:
        if file.cell == place.cell and file.tree is not None and place.line is not None:
            line = place.line - file.offset
            kinds = [one for one in syntax.walk(file.tree) if isinstance(one, ast.ClassDef) and syntax.spans(one, line)]
            return any(_has_such_a_method(one, line, name) for one in kinds)
    return False


def _has_such_a_method(kind: ast.ClassDef, line: int, name: str) -> bool:
    own = [(one, _used(one)) for one in kind.body if isinstance(one, _Function) and one.name != "__init__"]
    here = next(((one.name, used) for one, used in own if syntax.spans(one, line)), None)
    if here is None:
        return False
    others = ((one.name, used) for one, used in own if one.name != here[0])
    return any(name in used and other not in here[1] and here[0] not in used for other, used in others)


def _used(method: _Function) -> frozenset[str]:
    """Fields and methods of its object that a method names."""
    names = (one for one in syntax.walk(method) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load))
    return frozenset(one.attr for one in names if isinstance(one.value, ast.Name) and one.value.id == "self")
