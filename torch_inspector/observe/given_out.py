"""What the variables of comprehensions stood for when they failed, where the frame does not hold them any more.

From Python 3.12 on, comprehensions of lists, sets and dictionaries run in the frame around them. Once an exception has
left one, its variables are gone, or outer variables of the same names are there again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import takewhile
from types import TracebackType
from typing import Any

import torch

from torch_inspector.facts import syntax
from torch_inspector.observe import as_torch, comprehended, kinds, layers
from torch_inspector.observe.failing import DICTS, LISTS, OWN_TENSORS, Scope
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.shapes import is_array, shape_of
from torch_inspector.observe.turns import Comprehension

# Longer containers are not looked through for elements that are alike.
_MOST = 256
_ROWS = (torch.nn.ModuleList, torch.nn.Sequential)
# The frames in which torch calls a module.
_CALLING = ("_wrapped_call_impl", "_call_impl")


def with_given_out(scope: Scope, tree: ast.Module, entry: TracebackType, expressions: list[ast.expr]) -> Scope:
    """The scope of a failing expression, in which variables of comprehensions are what they were, or not known.

    They are known if the call that failed has them still, or if all that they are given is alike.
    """
    around = _without_frame(tree, entry)
    for node in reversed(around):
        hidden = dict.fromkeys(_names(node))
        scope = replace(scope, given_out={**scope.given_out, **hidden}, alike=scope.alike | frozenset(hidden))
        for one in node.generators:
            found = dict(_given(scope, one.target, one.iter))
            scope = replace(scope, given_out={**scope.given_out, **found})
    met = _met(entry, expressions) if around else {}
    known = {name: one for name, one in met.items() if name in scope.given_out}
    return replace(scope, given_out={**scope.given_out, **known}, alike=scope.alike - frozenset(known))


def _without_frame(tree: ast.Module, entry: TracebackType) -> list[Comprehension]:
    """The comprehensions around the failing expression that run in the frame of the code around them."""
    code = entry.tb_frame.f_code
    if code.co_name in comprehended.FRAMES and code.co_name != "<genexpr>":
        return []
    around = comprehended.around(tree, code, entry.tb_lasti)
    inner = [node for node in around if not comprehended.is_outside(node, code, entry.tb_lasti)]
    return list(takewhile(lambda node: not isinstance(node, ast.GeneratorExp), inner))


def _names(node: Comprehension) -> Iterator[str]:
    targets = (part for one in node.generators for part in syntax.walk(one.target))
    return (part.id for part in targets if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))


def _met(entry: TracebackType, expressions: list[ast.expr]) -> dict[str, Any]:
    """Names that the failing call gave to a module, with what the frame of that call holds."""
    call, inner = expressions[0] if expressions else None, entry.tb_next
    frame = inner.tb_frame if inner is not None else None
    if not isinstance(call, ast.Call) or frame is None or frame.f_code.co_name not in _CALLING:
        return {}
    if dict.get(frame.f_globals, "__name__") != "torch.nn.modules.module":
        return {}
    with locals_of(frame) as values:
        module, args, named = (values.get(name) for name in ("self", "args", "kwargs"))
    # A hook may have put other arguments in their place.
    if kinds.fields_of(module).get("_forward_pre_hooks") or type(args) is not tuple or type(named) is not dict:
        return {}
    pairs = [(call.func, module), *((one.value, named.get(one.arg)) for one in call.keywords if one.arg)]
    if len(args) == len(call.args) and not any(isinstance(one, ast.Starred) for one in call.args):
        pairs += zip(call.args, args, strict=True)
    return {node.id: thing for node, thing in pairs if isinstance(node, ast.Name)}


def _given(scope: Scope, target: ast.expr, source: ast.expr) -> Iterator[tuple[str, Any]]:
    """Each name of a target with what it is given out of something; None where that is not known."""
    called = source.func if isinstance(source, ast.Call) else None
    name = called.id if isinstance(called, ast.Name) else ""
    parts = target.elts if isinstance(target, ast.Tuple) else []
    if name == "zip" and isinstance(source, ast.Call) and len(parts) == len(source.args):
        for part, one in zip(parts, source.args, strict=True):
            yield from _given(scope, part, one)
    elif name == "enumerate" and isinstance(source, ast.Call) and len(parts) == 2 and source.args:  # noqa: PLR2004
        yield from _given(scope, parts[1], source.args[0])
    else:
        yield from _spread(target, list(_elements(scope, source)))


def _spread(target: ast.expr, elements: list[Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(target, ast.Name):
        yield target.id, elements[0] if _are_alike(elements) else None
    elif isinstance(target, ast.Tuple) and all(_has(one, len(target.elts)) for one in elements):
        starred = next((at for at, one in enumerate(target.elts) if isinstance(one, ast.Starred)), len(target.elts))
        for place, part in enumerate(target.elts[:starred]):
            yield from _spread(part, [one[place] for one in elements])


def _has(element: Any, count: int) -> bool:
    return kinds.is_one_of(element, (tuple, list)) and len(element) == count


def _elements(scope: Scope, source: ast.expr) -> Iterable[Any]:
    """What a list, a dictionary, a row of layers or a tensor gives out; nothing where that is not known."""
    asked = source.func if isinstance(source, ast.Call) and not source.args else None
    if isinstance(asked, ast.Attribute) and asked.attr in ("values", "items"):
        table = scope.value(asked.value)[1]
        entries = list(dict.items(table)) if kinds.is_one_of(table, DICTS) and len(table) <= _MOST else []
        return entries if asked.attr == "items" else [value for _, value in entries]
    thing: Any = scope.value(source)[1] if not isinstance(source, ast.Call) else None
    if kinds.is_one_of(thing, LISTS):
        return list(thing) if len(thing) <= _MOST else []
    if kinds.is_one_of(thing, _ROWS):
        return list(thing._modules.values())
    return _first_row(thing) if kinds.is_one_of(thing, OWN_TENSORS) else []


def _first_row(tensor: torch.Tensor) -> list[torch.Tensor]:
    """One row stands for all; of what has a history it would be a step of that."""
    plain = tensor.layout == torch.strided and not tensor.requires_grad and not tensor.is_nested
    return [tensor[0]] if plain and tensor.dim() and len(tensor) else []


def _are_alike(elements: list[Any]) -> bool:
    """True if any of them can stand for all, whatever is asked."""
    looks = [_look(one) for one in elements]
    return bool(looks) and looks[0] is not None and all(one == looks[0] for one in looks)


def _look(thing: Any) -> tuple[Any, ...] | None:
    if kinds.is_a(thing, torch.Tensor):
        states = as_torch.requires_grad(thing), as_torch.is_leaf(thing), as_torch.is_inference(thing)
        return id(type(thing)), str(as_torch.device(thing)), str(as_torch.dtype(thing)), shape_of(thing), *states
    if kinds.is_a(thing, torch.nn.Module):
        own = [(name, *(_look(one) or ())) for name, one in layers.walk_parameters(thing)]
        return id(type(thing)), *own
    return (id(type(thing)), str(thing.dtype), thing.ndim) if is_array(thing) else None
