"""Classes whose objects tell others of themselves, found in the text: nodes that know their parent, lists both ways."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

_TAKES = frozenset(("append", "add", "insert", "appendleft", "setdefault"))
_KEEPS = re.compile(r"^(set|register|attach|bind|connect|subscribe|link)(_|$)")
# A function that calls a function that calls one: so far it is followed.
_CALLS = 8


@lru_cache(maxsize=64)
def linked_classes(tree: ast.Module) -> frozenset[str]:
    """Names of the classes of a cell of which a method hands on `self` to be kept, or keeps a method of its own."""
    classes = [node for node in syntax.walk(tree) if isinstance(node, ast.ClassDef)]
    given = (name for one in classes for method in _methods(one) for name in _handed(one.name, method))
    return frozenset((*given, *(one.name for one in classes if _keeps_itself(one))))


def _keeps_itself(kind: ast.ClassDef) -> bool:
    """True for `self.done = [self.report]`, and for a lambda in which `self` is named."""
    own = frozenset(one.name for one in _methods(kind) if not one.decorator_list)
    return any(_is_bound(value, method.args.args[0].arg, own) for method in _methods(kind) for value in _kept(method))


def _kept(method: ast.FunctionDef) -> Iterator[ast.expr]:
    """What a method puts into a field of its object, or into a container there."""
    own = method.args.args[0].arg
    for node in syntax.walk(method):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(_is_part(one, own) for one in targets):
                yield node.value
        elif isinstance(node, ast.Call) and syntax.name_of(node.func) in _TAKES and _is_part(node.func, own):
            yield from (*node.args, *_values(node))


def _is_part(node: ast.expr, own: str) -> bool:
    whole = syntax.whole_of(node)
    return isinstance(whole, ast.Attribute) and dotted(whole).partition(".")[0] == own


def _is_bound(value: ast.expr, own: str, methods: frozenset[str]) -> bool:
    """True if a value has a method of the object in it that is not called, or a lambda that names the object."""
    called = {id(one.func) for one in syntax.walk(value) if isinstance(one, ast.Call)}
    for node in syntax.walk(value):
        if isinstance(node, ast.Lambda) and any(dotted(one) == own for one in syntax.walk(node)):
            return True
        if isinstance(node, ast.Attribute) and node.attr in methods and _is(node.value, own) and id(node) not in called:
            return True
    return False


def _methods(kind: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    return (node for node in kind.body if isinstance(node, ast.FunctionDef) and node.args.args)


def _handed(kind: str, method: ast.FunctionDef) -> Iterator[str]:
    """The class, once for each way in which its method gives away the object."""
    own = method.args.args[0].arg
    for node in syntax.walk(method):
        if isinstance(node, ast.Assign) and _is(node.value, own):
            outside = (one for one in node.targets if isinstance(one, (ast.Attribute, ast.Subscript)))
            yield from (kind for one in outside if syntax.root_of(one) != own or not _is(one.value, own))
        elif isinstance(node, ast.Call) and any(_is(one, own) for one in (*node.args, *_values(node))):
            last = syntax.name_of(node.func)
            if last in _TAKES or last[:1].isupper() or last in ("__class__", "setattr") or _KEEPS.search(last):
                yield kind


def _values(call: ast.Call) -> Iterator[ast.expr]:
    return (one.value for one in call.keywords)


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


@lru_cache(maxsize=64)
def _mentions(tree: ast.Module) -> dict[str, frozenset[str]]:
    """For each function and class of a cell the names that it mentions."""
    known: dict[str, set[str]] = {}
    for node in syntax.walk(tree):
        if isinstance(node, (*syntax.FUNCTIONS, ast.ClassDef)):
            known.setdefault(node.name, set()).update(_names(node))
    return {name: frozenset(names) for name, names in known.items()}


def _names(node: ast.AST) -> set[str]:
    return {one.id if isinstance(one, ast.Name) else one.attr for one in syntax.walk(node) if _is_name(one)}  # type: ignore[attr-defined]


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute))


def _lead_to(name: str, known: list[dict[str, frozenset[str]]]) -> set[str]:
    """Functions and classes of some cells that one of them mentions, or that these mention, itself included."""
    found, new = set[str](), {name}
    for _ in range(_CALLS):
        new = {one for one in new - found if any(one in names for names in known)}
        found |= new
        new = {inner for one in new for names in known for inner in names.get(one, ())}
    return found


def made_in(code: ast.Module, trees: list[ast.Module]) -> dict[str, int]:
    """Linked classes whose objects a cell may make, with the first line that leads there."""
    linked = frozenset[str]().union(*map(linked_classes, trees))
    found: dict[str, int] = {}
    known = [_mentions(tree) for tree in trees] if linked else []
    for node in syntax.walk(code) if linked else ():
        if isinstance(node, ast.Call):
            for name in _lead_to(dotted(node.func).rpartition(".")[2], known) & linked:
                found[name] = min(found.get(name, node.lineno), node.lineno)
    return found
