"""Where the text of cells loses the history of a loss: what comes from a model and is turned into plain numbers.

Goes backwards from the loss through assignments and the user's own functions. Read only where it is known from the run
that a backward call did not reach what it should.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from torch_inspector.facts import CutFact, Place, syntax
from torch_inspector.observe.cutting import cuts_in, decorators_of, is_draw, wrapped_without_grad
from torch_inspector.observe.place import CodeFile
from torch_inspector.observe.put_in import put_in
from torch_inspector.observe.scored_draws import is_scored, past_draws
from torch_inspector.observe.source import dotted
from torch_inspector.observe.texts import Function, Spot, Texts
from torch_inspector.observe.unpacked import indexed, is_drawn, is_second, part, position, second

# Cuts that stand around values of any kind, as around data.
_AROUND = ("no_grad", "leaf")
# Functions that are gone into, one inside the other, and expressions that are looked at in all.
_DEPTH, _EXPRESSIONS = 4, 300


def cuts_behind(root: ast.expr, scope: ast.AST, file: CodeFile, texts: Texts) -> tuple[CutFact, ...]:
    """What cuts a loss off from the models that it comes from, the nearest to the loss first."""
    found: dict[tuple[Place, str, str], CutFact] = {}
    scored = False
    for spot in _behind(Spot(root, scope, file, 0), texts):
        scored = scored or is_scored(spot.node)
        for node, operand, kind in cuts_in(spot.node, spot.scope):
            origins = sources(spot._replace(node=operand), texts)
            # What has a method `sample` may be a buffer as well, if it does not come from a model.
            if any(origins) or (origins and (kind != "drawn" or is_draw(node))):
                place = Place(spot.file.cell, node.lineno + spot.file.offset)
                text = ast.unparse(node) if len(ast.unparse(node)) < 100 else dotted_or(node)  # noqa: PLR2004
                text = f"@{text}" if node in getattr(spot.scope, "decorator_list", ()) else text
                optional = is_optional(node, spot.scope)
                found.setdefault((place, kind, text), CutFact(place, text, kind, origins, optional=optional))
        around = _around(spot, texts)
        for cut in (*_put_in(spot, texts), *((around,) if around is not None else ())):
            found.setdefault((cut.place, cut.kind, cut.text), cut)
    cuts = past_draws(found.values()) if scored else list(found.values())
    known = any(any(one.sources) for one in cuts)
    # Of a function without gradients, or a wrapped value, of which nothing is known, nothing is said beside others.
    return tuple(one for one in cuts if any(one.sources) or one.kind not in _AROUND or not known)


def _around(spot: Spot, texts: Texts) -> CutFact | None:
    """The `no_grad` of a decorator of the user's own around the function that an expression stands in."""
    for name in decorators_of(spot.scope):
        known = texts.function(name)
        off = wrapped_without_grad(known[1]) if known is not None else None
        origins = sources(spot, texts) if off is not None else ()
        if known is not None and off is not None and any(origins):
            mark = "@" if off.is_decorator else ""
            place = Place(known[0].cell, off.node.lineno + known[0].offset)
            return CutFact(place, f"{mark}{ast.unparse(off.node)}", "no_grad", origins)
    return None


def _put_in(spot: Spot, texts: Texts) -> Iterator[CutFact]:
    """What a model gives and another is called with as its weights: `net.weight = nn.Parameter(hyper(z))`."""
    for one in put_in(spot.node, spot.scope):
        origins = sources(spot._replace(node=one.value), texts)
        if any(origins):
            place = Place(spot.file.cell, one.node.lineno + spot.file.offset)
            optional = is_optional(one.node, spot.scope)
            yield CutFact(place, ast.unparse(one.node), one.kind, origins, optional=optional)


def is_optional(node: ast.expr, scope: ast.AST) -> bool:
    """True if an expression stands in a branch: it may be one that a later pass does not take."""
    branches = (one for one in syntax.walk(scope) if isinstance(one, (ast.If, ast.IfExp, ast.Match)))
    whole = getattr(node, "value", node)  # of the positions that `max` gives beside the values
    return any(inner is node or inner is whole for branch in branches for inner in syntax.walk(branch))


def dotted_or(node: ast.expr) -> str:
    """The last part of a long expression: `….argmax(1)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return f"….{node.func.attr}({', '.join(map(ast.unparse, node.args))})"
    return ast.unparse(node)[:100] + "…"


@lru_cache(maxsize=64)
def root_at(tree: ast.Module, line: int) -> ast.expr | None:
    """What `backward()` is called on in a line."""
    calls = [n for n in syntax.walk(tree) if isinstance(n, ast.Call) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    methods = [n.func for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr == "backward"]
    return next((_unscaled(method.value) for method in methods), None)


def _unscaled(node: ast.expr) -> ast.expr:
    """`loss` in `scaler.scale(loss)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "scale" and node.args:
        return node.args[0]
    return node


def _behind(first: Spot, texts: Texts) -> Iterator[Spot]:
    """The expression, and those that give values to the names in it, nearest first."""
    waiting, seen, count = [first], set[tuple[int, str] | tuple[str, int | None]](), 0
    while waiting and count < _EXPRESSIONS:
        spot, count = waiting.pop(0), count + 1
        yield spot
        if is_drawn(spot.node) and spot is not first and not _is_own_sample(spot.node, texts):
            continue
        for name in _names_in(spot.node):
            if (id(spot.scope), name) not in seen:
                seen.add((id(spot.scope), name))
                waiting.extend(given(name, spot, texts))
        for call in (n for n in syntax.walk(spot.node) if isinstance(n, ast.Call)):
            name, at = _callee(call, spot), spot.at if call is spot.node else indexed(spot.node).get(call)
            if (name, at) not in seen and (values := returned(call, spot._replace(at=at), texts)):
                seen.add((name, at))
                waiting.extend(values)


def _is_own_sample(node: ast.expr, texts: Texts) -> bool:
    """True for `generator.sample(16)`, a method in the cells: it may draw from what a layer gave."""
    name = dotted(node.func) if isinstance(node, ast.Call) else ""
    return name.endswith(".sample") and texts.function(name) is not None


def returned(call: ast.Call, spot: Spot, texts: Texts) -> list[Spot]:
    """What a function or method of the user's, or the `forward` of a model, gives back."""
    name = _callee(call, spot)
    known = texts.function(name) if name and spot.depth < _DEPTH else None
    if known is None:
        return []
    returns = (n.value for n in syntax.walk(known[1]) if isinstance(n, ast.Return) and n.value is not None)
    values = (part(value, spot.at) for value in returns)
    return [Spot(value, known[1], known[0], spot.depth + 1, call, spot, at) for value, at in values]


def _callee(call: ast.Call, spot: Spot) -> str:
    return _layer_in(call.func, spot.scope) or dotted(call.func)


def _names_in(node: ast.expr) -> list[str]:
    found = [dotted(n) for n in syntax.walk(node) if isinstance(n, (ast.Name, ast.Attribute))]
    return list(dict.fromkeys(name for name in found if name))


def given(name: str, spot: Spot, texts: Texts) -> Iterator[Spot]:
    """The values that a name is given in its scope, else in the latest cell that has it."""
    own = list(_values(name, spot.scope))
    if own or isinstance(spot.scope, Function):
        yield from (spot._replace(node=value, at=at) for value, at in own)
        yield from _argument(name, spot)
        return
    for file in texts.files:
        if file.tree is not None and file is not spot.file:
            values = list(_values(name, file.tree))
            if values:
                yield from (Spot(value, file.tree, file, spot.depth, at=at) for value, at in values)
                return


def _argument(name: str, spot: Spot) -> Iterator[Spot]:
    """What the call that led into a function gave one of its parameters."""
    if spot.call is None or spot.outer is None or not isinstance(spot.scope, Function):
        return
    names = [a.arg for a in (*spot.scope.args.posonlyargs, *spot.scope.args.args) if a.arg != "self"]
    given = dict(zip(names, spot.call.args, strict=False))
    given.update((one.arg, one.value) for one in spot.call.keywords if one.arg)
    if name in given:
        yield spot.outer._replace(node=given[name], at=None)


def _layer_in(node: ast.expr, scope: ast.AST) -> str:
    """`self.layers[]` for one of a list of layers: by its position, or the variable of a loop over them."""
    if isinstance(node, ast.Subscript):
        return f"{dotted(node.value)}[]" if dotted(node.value) else ""
    return _members_in(scope).get(node.id, "") if isinstance(node, ast.Name) else ""


@lru_cache(maxsize=64)
def _members_in(scope: ast.AST) -> dict[str, str]:
    """Variables of loops over the layers of a list, and that list: `block` and `self.blocks[]`."""
    found: dict[str, str] = {}
    for loop in syntax.walk(scope):
        if isinstance(loop, (ast.For, ast.comprehension)):
            names = [part.id for part in syntax.walk(loop.target) if isinstance(part, ast.Name)]
            every = next((n for n in syntax.walk(loop.iter) if isinstance(n, ast.Attribute) and dotted(n)), None)
            found.update((name, f"{dotted(every)}[]") for name in names if every is not None)
    return found


def _values(name: str, scope: ast.AST) -> Iterator[tuple[ast.expr, int | None]]:
    for node in _own(scope):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            targets: list[ast.expr] = list(node.targets) if isinstance(node, ast.Assign) else [node.target]
            stored = {dotted(part) for target in targets for part in syntax.walk(target)}
            if name in stored and node.value is not None:
                yield (
                    (second(node.value), None) if is_second(name, node) else part(node.value, position(name, targets))
                )
        elif isinstance(node, ast.Call) and dotted(node.func) == f"{name}.append":
            yield from ((value, None) for value in node.args)


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """What is in a scope, without functions and classes inside it."""
    stack = list(syntax.children(scope))
    while stack:
        node = stack.pop(0)
        yield node
        if not isinstance(node, syntax.INNER):
            stack.extend(syntax.children(node))


def sources(operand: Spot, texts: Texts) -> tuple[str, ...]:
    """The models that an expression comes from: those of the run by name, or layers that a method calls."""
    found: dict[str, None] = {}
    for spot in _behind(operand._replace(at=None), texts):
        for node in syntax.walk(spot.node):
            name = dotted(node.func) if isinstance(node, ast.Call) else ""
            layer = name.startswith("self.") and name.count(".") == 1 and texts.function(name) is None
            if name in texts.models or layer:
                found[name] = None
            elif isinstance(node, ast.Call) and (one := _layer_in(node.func, spot.scope)).startswith("self."):
                found[one] = None
            elif dotted(node) in texts.parameters and not _is_local(node, spot.scope):
                found[dotted(node)] = None
        parameters = _parameters(spot.scope) if spot.depth else ()
        if any(name in parameters for name in _names_in(spot.node)):
            found.setdefault("", None)
    return tuple(name for name in found if name) or tuple(found)


def _is_local(node: ast.AST, scope: ast.AST) -> bool:
    """True for a name that the function around it gives a value: it is not the variable of the cell."""
    if not isinstance(node, ast.Name) or not isinstance(scope, Function):
        return False
    stored = (one for one in _own(scope) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    return node.id in _parameters(scope) or any(one.id == node.id for one in stored)


def _parameters(scope: ast.AST) -> frozenset[str]:
    if not isinstance(scope, Function):
        return frozenset()
    return frozenset(a.arg for a in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs))


def cuts_at(
    place: Place,
    files: list[CodeFile],
    names: Iterable[tuple[str, str]],
    parameters: Iterable[str] = (),
    losses: Mapping[str, str] | None = None,
) -> Cuts:
    """The cuts behind the backward call in a line, and what it is called on.

    Args:
        place: The line as typed, and its cell.
        files: Code of the cells, latest first.
        names: What the code calls each module that ran, and its class.
        parameters: What the code of modules calls parameters that were not reached.
        losses: What it calls modules without parameters that ran, and their classes.
    """
    texts = Texts(files, {name: kind for name, kind in names if name}, frozenset(parameters), dict(losses or {}))
    for file in files:
        if file.cell == place.cell and file.tree is not None and place.line is not None:
            root = root_at(file.tree, place.line - file.offset)
            if root is not None:
                scope = syntax.scope_at(file.tree, place.line - file.offset)
                return Cuts(ast.unparse(root), cuts_behind(root, scope, file, texts))
    return Cuts("", ())


class Cuts(NamedTuple):
    """What was found behind one backward call."""

    root: str
    facts: tuple[CutFact, ...]
