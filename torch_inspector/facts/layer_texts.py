"""What a text says of layers and softmaxes: which have one output, and what goes into which. Each text is read once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.sole import called

_LINEAR, _CONVOLUTIONS = frozenset(["Linear", "LazyLinear"]), frozenset(["Conv1d", "Conv2d", "Conv3d"])
_SOFTMAXES = frozenset(["softmax", "Softmax"])
_LIBRARIES = frozenset(["F", "torch", "nn", "np", "numpy", "math"])


class Key(NamedTuple):
    """What a layer is called: a variable, or an attribute and the class whose text makes it."""

    name: str
    is_attribute: bool = False
    owner: str = ""
    """Empty where the text does not tell whose attribute it is."""


class Softmax(NamedTuple):
    """One call of a softmax."""

    node: ast.Call
    scope: int
    """Identity of the function around it; that of the text at the top."""
    inside: bool
    """True if it stands in a function or class."""
    axis: int | None
    names: frozenset[str]
    """Variables in it."""
    calls: frozenset[Key]
    """What it calls itself."""
    target: str
    """What is given its result; empty where it is used at once."""


class Text(NamedTuple):
    """All that one text says."""

    layers: dict[Key, bool | None]
    """True for one output, None for a number that is not written, False for another number."""
    given: dict[tuple[int, str], set[Key]]
    """What is called where a variable of a function is given a value."""
    given_at_top: dict[str, set[Key]]
    softmaxes: list[Softmax]


class _Standing(NamedTuple):
    """Where a node stands."""

    owner: str = ""
    scope: int = 0
    inside: bool = False


def read(source: str) -> Text:
    """What a text says, remembered; nothing of a text that is no Python."""
    tree = syntax.parse(source)
    return _read(tree) if tree is not None else Text({}, {}, {}, [])


@lru_cache(maxsize=64)
def _read(tree: ast.Module) -> Text:
    text, targets = Text({}, {}, {}, []), dict[int, str]()
    for node, at in _standing(tree):
        if isinstance(node, ast.Assign):
            _take(text, node, at)
            targets[id(node.value)] = ast.unparse(node.targets[0]) if len(node.targets) == 1 else ""
        elif isinstance(node, ast.Call) and called(node) in _SOFTMAXES:
            text.softmaxes.append(_softmax(node, at, targets.get(id(node), "")))
    return text


def _standing(tree: ast.Module) -> Iterator[tuple[ast.AST, _Standing]]:
    """The nodes of a text, an assignment before its value, each once."""
    waiting: list[tuple[ast.AST, _Standing]] = [(one, _Standing()) for one in reversed(tree.body)]
    while waiting:
        node, at = waiting.pop()
        yield node, at
        if isinstance(node, ast.ClassDef):
            at = at._replace(owner=node.name, inside=True)
        elif isinstance(node, syntax.FUNCTIONS):
            at = at._replace(scope=id(node), inside=True)
        waiting += [(one, at) for one in reversed(syntax.children(node))]


def _take(text: Text, node: ast.Assign, at: _Standing) -> None:
    """Notes what an assignment makes, and what its value calls."""
    calls: set[Key] | None = None
    for target, value in _pairs(node):
        key, outputs = _key(target, at.owner), _outputs(value)
        if key is not None and _is_layer(value):
            text.layers[key] = outputs if text.layers.get(key, outputs) == outputs else None
    for one in node.targets:
        if isinstance(one, ast.Name):
            calls = _calls(node.value, at.owner) if calls is None else calls
            text.given.setdefault((at.scope, one.id), set()).update(calls)
            if not at.inside:
                text.given_at_top.setdefault(one.id, set()).update(calls)


def _pairs(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        yield from zip(target.elts, value.elts, strict=False)
    else:
        yield target, value


def _softmax(node: ast.Call, at: _Standing, target: str) -> Softmax:
    names = frozenset(one.id for one in syntax.walk(node) if isinstance(one, ast.Name))
    calls = frozenset(_calls(node, at.owner))
    return Softmax(node, at.scope, at.inside, syntax.axis_named(node), names, calls, target)


def _calls(node: ast.AST, owner: str) -> set[Key]:
    keys = (_key(one.func, owner) for one in syntax.walk(node) if isinstance(one, ast.Call))
    return {one for one in keys if one is not None}


def _key(node: ast.expr, owner: str) -> Key | None:
    """What is made or called: `score`, `self.score`, `model.score`; None for a function of a library."""
    if isinstance(node, ast.Name):
        return Key(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    root = node.value.id if isinstance(node.value, ast.Name) else ""
    return None if root in _LIBRARIES else Key(node.attr, is_attribute=True, owner=owner if root == "self" else "")


def _is_layer(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and called(node) in _LINEAR | _CONVOLUTIONS | {"Sequential"}


def _outputs(node: ast.AST) -> bool | None:
    """True if a layer, or the last one of several, has one output, None if the number is not written."""
    kind = called(node)
    if not isinstance(node, ast.Call) or not _is_layer(node):
        return None if isinstance(node, ast.Starred) else False
    if kind == "Sequential":
        return _outputs(node.args[-1]) if node.args else None
    place = 0 if kind == "LazyLinear" else 1
    named = [one.value for one in node.keywords if one.arg in ("out_features", "out_channels")]
    given = next(iter([*named, *node.args[place : place + 1]]), None)
    return given.value == 1 if isinstance(given, ast.Constant) else None
