"""Computes expressions of a cell again of live numbers: arithmetic of torch only, beside double precision."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import partial
from time import thread_time
from types import FunctionType
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from torch_inspector.observe import kinds
from torch_inspector.observe.definitions import plain_definition
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.half_callees import MAKERS, bound, counts_modestly, forward_of, is_modest
from torch_inspector.observe.half_layers import LAYERS, layer, normalized
from torch_inspector.observe.half_names import Frame, changed_later, lines_of, straight
from torch_inspector.observe.half_twins import (
    COMPARISONS,
    FUNCTIONS,
    METHODS,
    OPERATORS,
    Pair,
    UnknownError,
    applied,
    cast,
    paired,
)
from torch_inspector.observe.kinds import fields_of, is_a
from torch_inspector.observe.shapes import Unknown as NoValue

_DEEP, _BUDGET_S, _TABLE = 5, 0.02, 2
_NUMBERS, _BOTH = (Pair, int, float, bool), 2
# The smallest number that float16 has with all its digits: where all others are as large, a zero is no lost number.
_NORMAL = 2.0**-14
_PLAIN = (int, float, bool, str, type(None), torch.dtype, torch.finfo)


class Reader:
    """Computes expressions again."""

    def __init__(self, scope: Scope) -> None:
        self._scope, self._deadline, self._depth = scope, thread_time() + _BUDGET_S, 0
        self.is_open = False
        """True if zeros were read that the cell may have made of small numbers: nobody knows what they should be."""

    def value(self, node: ast.expr, frame: Frame) -> Any:
        """What an expression gives; tensors as `Pair`. Raises `UnknownError` for all that is no arithmetic."""
        if thread_time() > self._deadline:
            raise UnknownError
        handler = getattr(self, f"_{type(node).__name__.lower()}", None)
        if handler is None:
            raise UnknownError
        return handler(node, frame)

    def _constant(self, node: ast.Constant, _: Frame) -> Any:
        return node.value

    def _tuple(self, node: ast.Tuple, frame: Frame) -> Any:
        return tuple(self.value(one, frame) for one in node.elts)

    def _list(self, node: ast.List, frame: Frame) -> Any:
        return [self.value(one, frame) for one in node.elts]

    def _name(self, node: ast.Name, frame: Frame) -> Any:
        if frame.own is not None:
            if node.id in frame.own:
                return frame.own[node.id]
            return self._known(self._scope.reading.names.get(node.id, NoValue))
        lines = lines_of(self._scope.node, node.id)
        earlier = [one for one in self._assigned(node.id) if one.lineno < frame.line]
        if any(line >= frame.line for line in lines):
            return self._again(earlier, node.id, frame.line)
        if changed_later(self._scope.node, node.id, frame.line - 1):
            raise UnknownError
        value = self._known(self._scope.reading.names.get(node.id, NoValue))
        made = bool(lines) and type(value) is Pair and value.actual.is_floating_point()
        return self._made_here(value, earlier, node.id, frame) if made else value

    def _made_here(self, value: Pair, earlier: list[ast.Assign], name: str, frame: Frame) -> Pair:
        """A variable that the cell gives its value above the line."""
        if earlier and not bool(value.actual.isfinite().all()):
            return self._again(earlier, name, frame.line)  # type: ignore[no-any-return]
        if value.actual.dtype is not torch.float16 or bool(value.actual.all()):
            return value
        return self._with_its_past(value, earlier, name, frame) if earlier else self._as_it_is(value)

    def _with_its_past(self, value: Pair, earlier: list[ast.Assign], name: str, frame: Frame) -> Pair:
        """A variable with zeros as its statement makes it again: they may be zero in float16 alone."""
        depth = self._depth
        try:
            again = self._again(earlier, name, frame.line)
        except UnknownError:
            self._depth = depth
            return self._as_it_is(value)
        if type(again) is not Pair or again.actual.dtype is not torch.float16:
            return self._as_it_is(value)
        if again.actual.shape != value.actual.shape or not bool((again.actual == value.actual).all()):
            return self._as_it_is(value)
        frame.made[name] = earlier[-1].value
        return again

    def _as_it_is(self, value: Pair) -> Pair:
        """A variable that the cell has made, nobody knows how."""
        others = value.actual[value.actual != 0].abs()
        self.is_open = self.is_open or not others.numel() or float(others.min()) < _NORMAL
        return value

    def _assigned(self, name: str) -> list[ast.Assign]:
        body = self._scope.node.body if isinstance(self._scope.node, ast.Module) else []
        found = [one for one in straight(body) if isinstance(one, ast.Assign) and len(one.targets) == 1]
        return [one for one in found if isinstance(one.targets[0], ast.Name) and one.targets[0].id == name]

    def _again(self, earlier: list[ast.Assign], name: str, line: int) -> Any:
        """The value that the last statement above a line gave a name, if nothing has changed it in between."""
        tree = self._scope.node
        last = max((one for one in lines_of(tree, name) if one < line), default=0)
        if not earlier or earlier[-1].lineno != last or changed_later(tree, name, last):
            raise UnknownError
        return self.value(earlier[-1].value, Frame(self._scope, earlier[-1].lineno))

    @staticmethod
    def _known(value: Any) -> Any:
        if kinds.is_one_of(value, _PLAIN):
            return value
        if kinds.is_one_of(value, (torch.Tensor, nn.Parameter)):
            return paired(value)
        return value

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Any:
        owner = self.value(node.value, frame)
        if type(owner) is Pair:
            if node.attr in ("dtype", "shape"):
                return owner.actual.dtype if node.attr == "dtype" else tuple(owner.actual.shape)
            if node.attr in ("T", "mT") and owner.actual.dim() == _TABLE:
                return Pair(getattr(owner.actual, node.attr), getattr(owner.exact, node.attr), owner.cause)
            raise UnknownError
        if type(owner) is torch.finfo:
            return getattr(owner, node.attr)
        if is_a(owner, nn.Module):
            fields = fields_of(owner)
            for place in (fields, fields.get("_buffers"), fields.get("_modules"), fields.get("_parameters")):
                if type(place) is dict and node.attr in place:
                    return self._known(place[node.attr])
            raise UnknownError
        found = self._scope.names.value(node)
        if type(found) is NoValue:
            raise UnknownError
        return self._known(found)

    def _unaryop(self, node: ast.UnaryOp, frame: Frame) -> Any:
        value = self.value(node.operand, frame)
        if isinstance(node.op, ast.USub) and kinds.is_one_of(value, (int, float)):
            return -value
        if not isinstance(node.op, (ast.USub, ast.Invert)) or type(value) is not Pair:
            raise UnknownError
        name = "neg" if isinstance(node.op, ast.USub) else "bitwise_not"
        return applied(getattr(torch._C.TensorBase, name), [value], {}, partial(frame.at, node))

    def _binop(self, node: ast.BinOp, frame: Frame) -> Any:
        sides = [self.value(one, frame) for one in (node.left, node.right)]
        if type(node.op) not in OPERATORS or any(not kinds.is_one_of(one, _NUMBERS) for one in sides):
            raise UnknownError
        return applied(OPERATORS[type(node.op)][1], sides, {}, partial(frame.at, node))

    def _compare(self, node: ast.Compare, frame: Frame) -> Any:
        sides = [self.value(one, frame) for one in (node.left, *node.comparators)]
        kind = type(node.ops[0])
        if len(sides) == _BOTH and kind in (ast.Is, ast.IsNot) and any(one is None for one in sides[:2]):
            return (sides[0] is sides[1]) == (kind is ast.Is)
        if len(sides) != _BOTH or kind not in COMPARISONS or any(not kinds.is_one_of(one, _NUMBERS) for one in sides):
            raise UnknownError
        return applied(COMPARISONS[kind], sides, {}, partial(frame.at, node))

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Any:
        owner, index = self.value(node.value, frame), self._index(node.slice)
        if type(owner) is tuple and kinds.is_one_of(index, (int, slice)):
            return self._known(owner[index])
        if type(owner) is not Pair:
            raise UnknownError
        return Pair(owner.actual[index], owner.exact[index], owner.cause)

    def _index(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Tuple):
            return tuple(self._index(one) for one in node.elts)
        if isinstance(node, ast.Slice):
            return slice(*(None if one is None else self._index(one) for one in (node.lower, node.upper, node.step)))
        try:
            return ast.literal_eval(node)
        except ValueError:
            raise UnknownError from None

    def _call(self, node: ast.Call, frame: Frame) -> Any:
        if any(one.arg is None for one in node.keywords):
            raise UnknownError
        args = [value for one in node.args for value in self._given(one, frame)]
        named = {str(one.arg): self.value(one.value, frame) for one in node.keywords}
        own = node.func.value if isinstance(node.func, ast.Attribute) else None
        of_torch = own is None or ast.unparse(own) in ("torch", "F", "nn.functional", "torch.nn.functional", "self")
        owner = self.value(own, frame) if own is not None and not of_torch else None
        if type(owner) is Pair and isinstance(node.func, ast.Attribute):
            return self._method(owner, node, args, named, frame)
        if owner is not None:
            raise UnknownError
        callee = self._callee(node.func, frame)
        return self._function(callee, node, args, named, frame)

    def _given(self, node: ast.expr, frame: Frame) -> list[Any]:
        """What an argument stands for: several behind a star."""
        if not isinstance(node, ast.Starred):
            return [self.value(node, frame)]
        values = self.value(node.value, frame)
        if not kinds.is_one_of(values, (tuple, list)):
            raise UnknownError
        return list(values)

    def _callee(self, func: ast.expr, frame: Frame) -> Any:
        if isinstance(func, ast.Call):  # `DiceLoss()(p, t)`
            made = self._scope.names.value(func.func)
            if type(made) is type and issubclass(made, nn.Module) and not func.args and not func.keywords:
                return made
            raise UnknownError
        if isinstance(func, ast.Attribute) and ast.unparse(func.value) == "self":
            return self._attribute(func, frame)
        found = self._scope.names.value(func) if frame.own is None else self._global(func)
        if type(found) is NoValue:
            raise UnknownError
        return found

    def _global(self, func: ast.expr) -> Any:
        value: Any = self._scope.reading.names.get(ast.unparse(func).partition(".")[0], NoValue)
        for part in ast.unparse(func).split(".")[1:]:
            value = fields_of(value).get(part) if type(value) is type(torch) else None
        return value

    def _method(self, owner: Pair, node: ast.Call, args: list[Any], named: Mapping[str, Any], frame: Frame) -> Any:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        as_other = cast(owner, name, args, partial(frame.at, node))
        if as_other is not None:
            return as_other
        if name == "size" and not named and len(args) <= 1:
            return tuple(owner.actual.shape) if not args else tuple(owner.actual.shape)[args[0]]
        if name not in METHODS:
            raise UnknownError
        return applied(METHODS[name], [owner, *args], named, partial(frame.at, node))

    def _function(self, callee: Any, node: ast.Call, args: list[Any], named: Mapping[str, Any], frame: Frame) -> Any:
        if callee is torch.finfo and len(args) == 1:
            return torch.finfo(args[0])
        if callee is torch.arange and not counts_modestly(args):
            raise UnknownError
        if (callee is torch.arange or id(callee) in MAKERS) and is_modest(args):
            return applied(callee, args, named, partial(frame.at, node))
        if callee is functional.normalize and args and type(args[0]) is Pair:
            return normalized(args[0], node, named, partial(frame.at, node))
        if id(callee) in FUNCTIONS and args and type(args[0]) is Pair:
            return applied(METHODS[FUNCTIONS[id(callee)]], args, named, partial(frame.at, node))
        if kinds.is_one_of(callee, LAYERS):
            return layer(callee, args, partial(frame.at, node)) if not named else self._own(callee, args, named)
        return self._own(callee, args, named)

    def _own(self, callee: Any, args: list[Any], named: Mapping[str, Any]) -> Any:
        """A function, or a module without parameters, that a cell defines."""
        function: Any = callee
        own: dict[str, Any] = {}
        if type(callee) is not FunctionType:
            function, own = forward_of(callee), {"self": callee}
        if type(function) is not FunctionType or self._depth >= _DEEP:
            raise UnknownError
        tree = self._scope.reading.tree_of(function.__code__)
        body = plain_definition(tree, function.__code__) if tree is not None else None
        if body is None:
            raise UnknownError
        self._depth += 1
        return self._run(body, Frame(self._scope, 0, {**bound(body, function, args, named, own), **own}, function))

    def _run(self, function: ast.FunctionDef, frame: Frame) -> Any:
        for one in function.body:
            if isinstance(one, (ast.Assert, ast.Pass)) or (
                isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
            ):
                continue
            if isinstance(one, ast.Return) and one.value is not None:
                value = self.value(one.value, frame)
                self._depth -= 1
                return value
            self._bind(one, frame)
        raise UnknownError

    def _bind(self, statement: ast.stmt, frame: Frame) -> None:
        own = frame.own if frame.own is not None else {}
        if isinstance(statement, ast.If):
            test = self.value(statement.test, frame)
            if type(test) is not bool:
                raise UnknownError
            for one in statement.body if test else statement.orelse:
                self._bind(one, frame)
            return
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        value = self.value(statement.value, frame) if isinstance(statement, ast.Assign) else None
        if isinstance(target, ast.Name) and isinstance(statement, ast.Assign):
            own[target.id], frame.made[target.id] = value, statement.value
        elif isinstance(target, ast.Tuple) and type(value) is tuple and len(value) == len(target.elts):
            own.update(
                (one.id, part) for one, part in zip(target.elts, value, strict=True) if isinstance(one, ast.Name)
            )
        else:
            raise UnknownError
