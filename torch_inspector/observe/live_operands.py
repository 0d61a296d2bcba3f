"""What an operand of small whole numbers stood for, where a part of a tensor or an array that is there tells it."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

import torch

from torch_inspector.facts import syntax
from torch_inspector.observe.arrays import copied, is_small, part_of, taken_over
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.fitting import LARGEST
from torch_inspector.observe.iterated import first_turn
from torch_inspector.observe.kinds import is_one_of
from torch_inspector.observe.last_given import last_given
from torch_inspector.observe.reworked import reworked
from torch_inspector.observe.seen import Spot
from torch_inspector.observe.shapes import UNKNOWN, is_array, is_tensor, shape_of
from torch_inspector.observe.statements import stores_in
from torch_inspector.observe.written import alike, is_written
from torch_inspector.observe.written_later import is_given_away

# Methods that show the same numbers in other sizes.
_VIEWS = frozenset(
    ["unfold", "view", "reshape", "flatten", "ravel", "squeeze", "unsqueeze", "transpose", "permute", "t", "narrow",
     "select", "detach", "contiguous", "flip", "roll", "fliplr", "flipud"]
)  # fmt: skip
# Those that show the same numbers at another place.
_SAME = frozenset(["copy", "clone"])
_DEPTH = 9


class Look(NamedTuple):
    """Somebody's look at an operand."""

    scope: Scope
    depth: int = 0
    wide: bool = False
    """True if tensors of any type of numbers are worked out anew, not only of small ones."""

    def deeper(self, **more: Any) -> Look:
        """The same, one step further on."""
        return self._replace(depth=self.depth + 1, **more)


def live_operand(look: Look, side: ast.expr) -> Any:
    """What an operand is now; a part of a plain tensor or array is looked at through a view of its own."""
    scope = look.scope
    value = scope.names.value(side)
    if is_tensor(value) or is_array(value) or look.depth > _DEPTH:
        return UNKNOWN if _is_given_anew(scope, side) else value
    if isinstance(side, ast.Name):
        return value if is_one_of(value, (int, float)) else _named(look, side.id, value)
    array = copied(scope.names, side)
    if array is not None:
        return taken_over(scope.names, side, live_operand(look.deeper(), array), value)
    part = _part(look, side, value)
    return part if is_tensor(part) or is_array(part) or is_one_of(part, (int, float)) else _anew(look, side, part)


def _anew(look: Look, side: ast.expr, otherwise: Any) -> Any:
    """What a few kinds of operations made, where they make the same again."""
    names = look.scope.names
    value = reworked(
        names, side, lambda part, wide: live_operand(look.deeper(wide=wide or look.wide), part), wide=look.wide
    )
    sizes = shape_of(otherwise)
    alike = is_tensor(value) and (sizes is None or -1 in sizes or tuple(value.shape) == tuple(sizes))
    return value if alike else otherwise


def _named(look: Look, name: str, otherwise: Any) -> Any:
    """A variable of a function that is done, by what it was given."""
    names, spot = look.scope.names, look.scope.names.spot
    last = last_given(spot.scope, name, spot.line) if spot is not None else None
    if spot is not None and last is not None and last.loop is not None:
        with names.at(spot._replace(line=last.line)):
            value = first_turn(last.loop, names).get(name, UNKNOWN)
        return value if is_tensor(value) and not _may_be_written(look.scope, name) else otherwise
    given = last.value if last is not None else names.given.get(name) or names.given_before(name)
    if given is None or spot is None:
        return _argument(look, name, otherwise)
    line = last.line if last is not None else _line_before(spot, name)
    if line > spot.line or _may_be_written(look.scope, name):
        return otherwise
    with names.at(spot._replace(line=line)):
        return live_operand(look.deeper(), given)


def _line_before(spot: Spot, name: str) -> int:
    """The last line before a statement that gives a name a value; the next one where there is none."""
    lines = stores_in(spot.scope).get(name, ())
    return max((line for line in lines if line <= spot.line), default=spot.line + 1)


def _argument(look: Look, name: str, otherwise: Any) -> Any:
    """A parameter by the expression that the caller gives it."""
    scope, caller, call = look.scope, look.scope.caller, look.scope.call
    given = scope.arguments.get(name)
    if caller is None or call is None or given is None or stores_in(scope.node).get(name) or _is_turned(caller, call):
        return otherwise
    if isinstance(given, ast.Name) or any(isinstance(one, ast.Starred) for one in call.args):
        return otherwise
    with caller.names.at(Spot(caller.node, call.lineno)):
        return live_operand(look.deeper(scope=caller), given)


def _is_turned(caller: Scope, call: ast.Call) -> bool:
    """True for a call that is no part of the text, or has variables of a comprehension or a lambda around it."""
    parents, here = syntax.parents(caller.node), call
    while (parent := parents.get(id(here))) is not None and not isinstance(parent, ast.stmt):
        if isinstance(parent, (*syntax.COMPREHENSIONS, ast.Lambda)):
            return True
        here = parent  # type: ignore[assignment]
    return parent is None


def _part(look: Look, side: ast.expr, value: Any) -> Any:
    """A part, or other sizes, of a live tensor or array; what is known already where there is none."""
    scope, func = look.scope, side.func if isinstance(side, ast.Call) else None
    if isinstance(side, ast.Call) and isinstance(func, ast.Attribute) and func.attr in _SAME:
        return value if side.args or side.keywords else live_operand(look.deeper(), func.value)
    if isinstance(side, ast.Subscript):
        owner, parts = side.value, side.slice.elts if isinstance(side.slice, ast.Tuple) else [side.slice]
    elif isinstance(side, ast.Call) and isinstance(func, ast.Attribute) and func.attr in _VIEWS and not side.keywords:
        owner, parts = func.value, side.args
    else:
        return value
    index = tuple(_index(scope, part) for part in parts)
    if any(one is UNKNOWN for one in index):
        return value
    of = live_operand(look.deeper(), owner)
    if is_small(of) and isinstance(side, ast.Subscript):
        return part_of(of, index, value)
    return _shown(of, func, index, value)


def _shown(of: Any, func: ast.expr | None, index: tuple[Any, ...], otherwise: Any) -> Any:
    """A view of a tensor on the CPU, by an index or a method."""
    if type(of) is not torch.Tensor or not of.is_cpu or of.requires_grad or of.numel() > LARGEST:
        return otherwise
    try:
        return getattr(of, func.attr)(*index) if isinstance(func, ast.Attribute) else of[index]
    except Exception:  # noqa: BLE001  (the tensor may be another one by now)
        return otherwise


def _may_be_written(scope: Scope, name: str) -> bool:
    """True if a scope writes to a variable by any of its names, or gives it to a function of the user's that does."""
    names, parts = alike(scope.node, frozenset([name])), list(syntax.own_expressions(scope.node))
    return is_written(parts, names) or is_given_away(scope, parts, names)


def _is_given_anew(scope: Scope, side: ast.expr) -> bool:
    """True for an attribute that the function itself gives another value: what it was is not known."""
    if not scope.function or not isinstance(side, ast.Attribute):
        return False
    stored = (one for one in syntax.own_expressions(scope.node) if isinstance(one, ast.Attribute))
    return any(one.attr == side.attr and not isinstance(one.ctx, ast.Load) for one in stored)


def _index(scope: Scope, part: ast.expr) -> Any:
    """A number, a slice, `...`, or None for a new axis; `UNKNOWN` for anything else."""
    if isinstance(part, ast.Constant) and (part.value is ... or part.value is None):
        return part.value
    if not isinstance(part, ast.Slice):
        value = scope.names.value(part)
        return value if type(value) is int else UNKNOWN
    bounds = [scope.names.value(one) if one is not None else None for one in (part.lower, part.upper, part.step)]
    return slice(*bounds) if all(one is None or type(one) is int for one in bounds) else UNKNOWN
