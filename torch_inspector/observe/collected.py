"""Terms of a loss that are kept in a list or a dictionary: what `sum(losses.values())` adds up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.cuts import given, returned
from torch_inspector.observe.source import dotted
from torch_inspector.observe.texts import Spot, Texts

_JOINS = frozenset(["stack", "cat", "concat", "concatenate", "hstack", "vstack"])
_SUMS = frozenset(["sum", "mean", "nansum", "nanmean"])
_COPIES = frozenset(["list", "tuple", "reversed", "sorted"])
# Methods after which a list or dictionary no longer has what the text put there, or has it elsewhere.
_CHANGES = frozenset(["pop", "popitem", "popleft", "remove", "clear", "update", "reverse", "sort", "insert"])
# Names for a list, one after the other, that are followed.
_DEEPEST = 4
_PLAIN = (ast.Name, ast.Constant, ast.Subscript, ast.Attribute)
_Loop = ast.For | ast.comprehension


class Element(NamedTuple):
    """One of the values that a list or dictionary holds."""

    spot: Spot
    weight: Spot | None = None
    """What it is multiplied with where it is taken out: `w` of `sum(w * one for one in losses)`."""
    key: object = None
    """Where it lies, if the text says so; a None may be anywhere."""


def summed(node: ast.Call, spot: Spot, texts: Texts) -> Spot | None:
    """`losses` of `sum(losses)` and of `torch.stack(losses).mean()`; None for other calls."""
    if isinstance(node.func, ast.Name):
        return spot._replace(node=node.args[0]) if node.func.id == "sum" and node.args else None
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in _SUMS:
        return None
    called = dotted(node.func.value) == "torch"
    return _joined(spot._replace(node=node.args[0] if called and node.args else node.func.value), texts)


def _joined(spot: Spot, texts: Texts) -> Spot | None:
    """`losses` of `torch.stack(losses)`, or of a name for that."""
    node = spot.node
    if isinstance(node, ast.Name):
        values = list(_latest(node, spot, texts))
        return _joined(values[0], texts) if len(values) == 1 and isinstance(values[0].node, ast.Call) else None
    root, _, last = dotted(node.func).rpartition(".") if isinstance(node, ast.Call) else ("", "", "")
    is_join = isinstance(node, ast.Call) and root == "torch" and last in _JOINS and node.args
    return spot._replace(node=node.args[0]) if is_join else None  # type: ignore[attr-defined]


def elements(spot: Spot, texts: Texts, depth: int = 0) -> Iterator[Element]:
    """What the text puts into a list or dictionary."""
    node = spot.node
    if depth > _DEEPEST:
        return
    if isinstance(node, (ast.List, ast.Tuple)):
        whole = [(n, one) for n, one in enumerate(node.elts) if not isinstance(one, ast.Starred)]
        yield from (Element(spot._replace(node=one), None, n) for n, one in whole)
    elif isinstance(node, ast.Dict):
        pairs = [(key, one) for key, one in zip(node.keys, node.values, strict=True) if key is not None]
        yield from (Element(spot._replace(node=one), None, _constant(key)) for key, one in pairs)
    elif isinstance(node, ast.Name):
        yield from _held(node, spot, texts, depth)
    elif isinstance(node, (ast.GeneratorExp, ast.ListComp)):
        yield from _each(node, spot, texts, depth)
    elif isinstance(node, ast.Call):
        yield from _called(node, spot, texts, depth)


def _constant(key: ast.expr) -> object:
    return key.value if isinstance(key, ast.Constant) else None


def _held(name: ast.Name, spot: Spot, texts: Texts, depth: int) -> list[Element]:
    """The elements behind a name: what is written under a key takes the place of what may lie there."""
    found: list[Element] = []
    for one in _latest(name, spot, texts):
        key = _put(one.scope, name.id).get(id(one.node), _UNPUT)
        if key is _UNPUT:
            found.extend(elements(one, texts, depth + 1))
        elif key is _APPENDED:
            found.append(Element(one))
        else:
            kept = [old for old in found if key is not _SOMEWHERE and old.key not in (None, key)]
            found = [*kept, Element(one, None, None if key is _SOMEWHERE else key)]
    return found


def _called(node: ast.Call, spot: Spot, texts: Texts, depth: int) -> Iterator[Element]:
    """The elements of `losses.values()`, of `list(losses)`, of `dict(ce=…)` and of what a function gives back."""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "values" and not node.args:
        yield from elements(spot._replace(node=node.func.value), texts, depth + 1)
    elif isinstance(node.func, ast.Name) and node.func.id in _COPIES and node.args:
        yield from elements(spot._replace(node=node.args[0]), texts, depth + 1)
    elif isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args:
        yield from (Element(spot._replace(node=one.value), None, one.arg) for one in node.keywords if one.arg)
    else:
        for one in returned(node, spot, texts):
            yield from elements(one, texts, depth + 1)


def _each(node: ast.GeneratorExp | ast.ListComp, spot: Spot, texts: Texts, depth: int) -> Iterator[Element]:
    """The elements of another list that a comprehension takes, each perhaps with a weight, or makes."""
    loop, taken, weight = node.generators[0], node.elt, None
    if isinstance(taken, ast.BinOp) and isinstance(taken.op, ast.Mult):
        sides = (taken.left, taken.right)
        both = [(a, b) for a, b in (sides, sides[::-1]) if _source(a, loop) is not None and isinstance(b, _PLAIN)]
        # Of two elements that are multiplied the text does not say which is the weight: the last is the loss.
        taken, weight = both[-1] if both else (taken, None)
    source = _source(taken, loop)
    if source is None or len(node.generators) > 1 or loop.ifs:
        yield Element(spot._replace(node=node.elt))
        return
    factor = _source(weight, loop) or weight if weight is not None else None
    over = spot._replace(node=factor) if factor is not None else None
    for one in elements(spot._replace(node=source), texts, depth + 1):
        yield one._replace(weight=over or one.weight)


def turned(spot: Spot, texts: Texts) -> Iterator[Element]:
    """The elements that a loop gives to a name, if it takes them all: `for one in losses: total += one`."""
    for loop in syntax.walk(spot.scope):
        if isinstance(loop, ast.For) and any(one is spot.node for one in syntax.walk(loop)):
            inner = list(syntax.walk(loop))
            source = _source(spot.node, loop)
            if source is not None and not any(isinstance(one, (ast.If, ast.Continue, ast.Break)) for one in inner):
                yield from elements(spot._replace(node=source), texts)


def _source(node: ast.expr, loop: _Loop) -> ast.expr | None:
    """`losses` for the variable `one` of a loop over `losses`, `zip(weights, losses)` or `losses.items()`."""
    if not isinstance(node, ast.Name):
        return None
    target, over = loop.target, loop.iter
    if isinstance(target, ast.Name):
        return over if target.id == node.id else None
    names = [dotted(one) for one in target.elts] if isinstance(target, ast.Tuple) else []
    if not isinstance(over, ast.Call) or names.count(node.id) != 1:
        return None
    at, last = names.index(node.id), dotted(over.func).rpartition(".")[2]
    if last == "zip" and at < len(over.args):
        return over.args[at]
    if last == "items" and at == 1 and isinstance(over.func, ast.Attribute):
        return over.func.value
    return over.args[0] if last == "enumerate" and at == 1 and over.args else None


def keyed(node: ast.Subscript, spot: Spot, texts: Texts) -> list[Spot]:
    """What the text puts under one key: `losses["reg"]`; empty where it does not show all of that."""
    if not isinstance(node.value, ast.Name) or not isinstance(node.slice, ast.Constant):
        return []
    key, found = node.slice.value, list[Spot]()
    for one in _latest(node.value, spot, texts):
        put = _put(one.scope, node.value.id).get(id(one.node), _UNPUT)
        if put is _SOMEWHERE:
            return []
        if put is not _UNPUT:
            found = [one] if put == key else found
        else:
            shown = _under(key, one, texts)
            if shown is None:
                return []
            found.extend(shown)
    return found


# Keys of a value that is not put into anything, of one that `append` puts there, and of one that only the run knows.
_UNPUT, _APPENDED, _SOMEWHERE = object(), object(), object()


def _under(key: object, spot: Spot, texts: Texts) -> list[Spot] | None:
    """What a display of a dictionary or list has under a key; None for anything else."""
    node = spot.node
    if isinstance(node, ast.Dict) and all(isinstance(one, ast.Constant) for one in node.keys):
        pairs = zip(node.keys, node.values, strict=True)
        return [spot._replace(node=one) for name, one in pairs if isinstance(name, ast.Constant) and name.value == key]
    if isinstance(node, (ast.List, ast.Tuple)) and type(key) is int and 0 <= key < len(node.elts):
        return None if any(isinstance(one, ast.Starred) for one in node.elts) else [spot._replace(node=node.elts[key])]
    if not isinstance(node, ast.Call):
        return None
    if dotted(node.func) == "dict" and not node.args:
        return [spot._replace(node=one.value) for one in node.keywords if one.arg == key]
    values = [_under(key, one, texts) for one in returned(node, spot, texts)]
    return [spot for one in values for spot in one or ()] if values and None not in values else None


def _latest(name: ast.Name, spot: Spot, texts: Texts) -> Iterator[Spot]:
    """What a name for a list is given, and what is put into it, since it was made last; nothing if it is changed."""
    values = [] if is_changed(name.id, spot, texts) else list(given(name.id, spot, texts))
    put = {id(one.node) for one in values if id(one.node) in _put(one.scope, name.id)}
    added = {id(one.value) for one in syntax.walk(spot.scope) if isinstance(one, ast.AugAssign)}
    own = [one for one in values if one.scope is spot.scope and _is_before(one.node, name)]
    made = max((one.node.lineno for one in own if id(one.node) not in put | added), default=0)
    yield from (one for one in own if one.node.lineno >= made)
    yield from (one for one in values if one.scope is not spot.scope)


def is_changed(name: str, spot: Spot, texts: Texts) -> bool:
    """True if the text takes elements out of a list or dictionary, replaces some, or has a function do that."""
    scopes = {spot.scope, *(one.scope for one in given(name, spot, texts))}
    changed, calls = frozenset[str]().union(*map(_changed, scopes)), [one for a in scopes for one in _handed(a, name)]
    if name in changed or any(alias in changed for a in scopes for alias in _aliases(a, name)):
        return True
    known = [texts.function(dotted(call.func)) for call in calls if dotted(call.func)]
    return any(_changed(one[1]) for one in known if one is not None)


@lru_cache(maxsize=128)
def _changed(scope: ast.AST) -> frozenset[str]:
    """Names of lists and dictionaries that a scope changes by more than adding to them."""
    found: list[ast.expr] = []
    for node in syntax.walk(scope):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
            found.append(node.func.value)
        elif isinstance(node, ast.Delete):
            found.extend(one.value for one in node.targets if isinstance(one, ast.Subscript))
        elif isinstance(node, ast.Assign):
            parts = [one for one in node.targets if isinstance(one, ast.Subscript)]
            found.extend(one.value for one in parts if isinstance(one.slice, ast.Slice))
        elif isinstance(node, ast.AugAssign):
            whole = isinstance(node.op, ast.BitOr)
            found.extend([node.target] if whole else [])
            found.extend([node.target.value] if isinstance(node.target, ast.Subscript) else [])
    return frozenset(map(dotted, found)) - {""}


def _handed(scope: ast.AST, name: str) -> Iterator[ast.Call]:
    """Calls that are given a variable as it is."""
    for node in syntax.walk(scope):
        if isinstance(node, ast.Call):
            given_to = [*node.args, *(one.value for one in node.keywords)]
            yield from [node] if any(isinstance(one, ast.Name) and one.id == name for one in given_to) else []


def _aliases(scope: ast.AST, name: str) -> Iterator[str]:
    """Other names for the same object: `rest = losses`."""
    for node in syntax.walk(scope):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == name:
            yield from filter(None, map(dotted, node.targets))


def _is_before(value: ast.expr, name: ast.Name) -> bool:
    return value.lineno <= name.lineno and not any(one is name for one in syntax.walk(value))


@lru_cache(maxsize=128)
def _put(scope: ast.AST, name: str) -> dict[int, object]:
    """Values that a scope puts into a list or dictionary, and under which key each."""
    found: dict[int, object] = {}
    for node in syntax.walk(scope):
        if isinstance(node, ast.Call) and dotted(node.func) == f"{name}.append":
            found.update((id(one), _APPENDED) for one in node.args)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
            if dotted(target.value) == name:
                found[id(node.value)] = target.slice.value if isinstance(target.slice, ast.Constant) else _SOMEWHERE
    return found
