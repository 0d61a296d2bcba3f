"""The expression that failed, and the objects that it names, looked up without running any of it."""

from __future__ import annotations

import ast
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any, NamedTuple

import torch

from torch_inspector.facts import syntax
from torch_inspector.observe import kinds

DICTS = (dict, OrderedDict, defaultdict)
LISTS = (list, tuple, deque)
_MODULE_PARTS = ("_parameters", "_buffers", "_modules")
# Attributes and methods of a tensor that give no tensor.
_NO_TENSOR = frozenset(
    ("shape", "size", "device", "dtype", "ndim", "dim", "numel", "item", "tolist", "numpy", "is_cuda", "requires_grad")
)
_MOVES = frozenset(("to", "cuda", "cpu", "type"))
_KEY_KINDS = (str, int)
_LONGEST = 100
# What may ask a tensor for one of its sizes.
_ASKING = (ast.Call, ast.Subscript)
_PLAIN = (ast.Name, ast.Attribute, ast.Subscript)
OWN_TENSORS = (torch.Tensor, torch.nn.Parameter)


class Named(NamedTuple):
    """Something that the failing expression names."""

    path: str
    thing: Any
    nested: bool
    """True if it went into a part that had its result before the failure."""
    device: str = ""
    """Where the expression has just moved it: `labels.to(device)`."""


def failing_expressions(tree: ast.Module, traceback: TracebackType) -> list[ast.expr]:
    """The expression that a traceback entry was at; all of the statement where that is not known."""
    line = traceback.tb_lineno
    around = [n for n in syntax.walk(tree) if isinstance(n, ast.expr) and _spans(n, _range(traceback))]
    found = min(around, key=_length, default=None)
    if found is not None and not isinstance(getattr(found, "ctx", None), ast.Store):
        return [found]  # of `x[i] = y` the value is wanted too
    statements = [n for n in syntax.walk(tree) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or 0)]
    innermost = max(statements, key=lambda n: n.lineno, default=None)
    return [n for n in syntax.children(innermost) if isinstance(n, ast.expr)] if innermost else []


def failing_texts(tree: ast.Module, traceback: TracebackType) -> tuple[str, str]:
    """The simple statement that a traceback entry was at, and the expression in it; empty where they are long."""
    line, place = traceback.tb_lineno, _range(traceback)
    simple = (n for n in syntax.walk(tree) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or 0))
    inner = [n for n in simple if not hasattr(n, "body")]
    # Several may stand in one line: the place tells which, where this Python knows places.
    statement = max(inner, key=lambda n: (n.lineno, _spans(n, place)), default=None)
    around = [n for n in syntax.walk(tree) if isinstance(n, ast.expr) and _spans(n, place)]
    return _text(statement), _text(min(around, key=_length) if around else None)


def _text(node: ast.AST | None) -> str:
    text = ast.unparse(node) if node is not None else ""
    return text if len(text) <= _LONGEST and "\n" not in text else ""


def _range(traceback: TracebackType) -> tuple[int, int, int, int] | None:
    positions = getattr(traceback.tb_frame.f_code, "co_positions", None)
    if positions is None:
        return _matched(traceback)
    for index, (first, last, start, end) in enumerate(positions()):
        if index == traceback.tb_lasti // 2:
            return None if None in (first, last, start, end) else (first, start, last, end)
    return None


def _matched(traceback: TracebackType) -> tuple[int, int, int, int] | None:
    """The same before Python 3.11, whose code knows lines only: `executing`, which IPython brings along, matches it."""
    try:
        from executing import Source
    except ImportError:
        return None
    node = Source.executing(traceback).node
    if not isinstance(node, ast.expr) or node.end_lineno is None or node.end_col_offset is None:
        return None
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _spans(node: ast.expr | ast.stmt, its: tuple[int, int, int, int] | None) -> bool:
    if its is None or node.end_lineno is None or node.end_col_offset is None:
        return False
    begins = (node.lineno, node.col_offset) <= its[:2]
    return begins and its[2:] <= (node.end_lineno, node.end_col_offset)


def _length(node: ast.expr) -> tuple[int, int]:
    lines = (node.end_lineno or node.lineno) - node.lineno
    return lines, (node.end_col_offset or 0) - (node.col_offset if lines == 0 else 0)


@dataclass(frozen=True)
class Scope:
    """The variables that a failing expression can name. Holds the user's objects: drop it at once."""

    values: Mapping[str, Any]
    frame: FrameType
    given_out: Mapping[str, Any] = field(default_factory=dict)
    """Variables of comprehensions that the frame does not hold, and what they were; None where nobody knows."""
    alike: frozenset[str] = frozenset()
    """Those of which one of several values is there that are alike."""

    def named(self, expression: ast.expr) -> list[Named]:
        """Tensors and modules in an expression, each once, those that met in the failing operation first."""
        found: dict[str, Named] = {}
        expression = _asked(expression)
        for one in sorted(self._parts(expression, failing=True), key=lambda named: named.nested):
            found.setdefault(one.path, one)
        return list(found.values())

    def _parts(self, node: ast.AST, *, failing: bool = False, nested: bool = False) -> Iterator[Named]:
        known = self._known(node, nested=nested)
        if known is not None:
            yield known
        elif isinstance(node, ast.Call):
            yield from self._parts_of_call(node, nested=nested or not failing)
        elif isinstance(node, ast.Attribute) and (node.attr in _NO_TENSOR or isinstance(node.value, _PLAIN)):
            return  # a number of a tensor, or a property: what its owner is says nothing of it
        elif not isinstance(node, ast.Lambda):
            for part in syntax.children(node):
                yield from self._parts(part, nested=nested)
            return
        if isinstance(node, ast.Subscript):
            yield from self._parts(node.slice, nested=nested or not failing)
        elif known is not None and isinstance(node, ast.Call) and not known.device:
            yield from self._arguments(node, nested=nested or not failing)

    def _parts_of_call(self, call: ast.Call, *, nested: bool) -> Iterator[Named]:
        if isinstance(call.func, ast.Attribute) and call.func.attr in _NO_TENSOR:
            return
        receiver = call.func
        if isinstance(receiver, ast.Attribute) and self.value(receiver)[1] is None:
            receiver = receiver.value
        yield from self._parts(receiver, nested=nested)
        yield from self._arguments(call, nested=nested)

    def _arguments(self, call: ast.Call, *, nested: bool) -> Iterator[Named]:
        for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
            yield from self._parts(argument, nested=nested)

    def _known(self, node: ast.AST, *, nested: bool) -> Named | None:
        """What an expression stands for, if that is a tensor or a module, or one that it moves."""
        if isinstance(node, ast.Call) and self._is_moving(node):
            path, thing = self.value(node.func.value)  # type: ignore[attr-defined]
            return Named(ast.unparse(node), thing, nested, self._goal(node)) if _counts(thing) and path else None
        path, thing = self.value(node)
        return Named(path, thing, nested) if _counts(thing) else None

    def _is_moving(self, call: ast.Call) -> bool:
        """True for `x.to(device)`, not for `x.to(torch.long)`."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in _MOVES:
            return False
        given = [self.value(a)[1] for a in (*call.args, *(k.value for k in call.keywords))]
        return call.func.attr in ("cpu", "cuda") or any(not kinds.is_a(one, torch.dtype) for one in given)

    def _goal(self, call: ast.Call) -> str:
        """Where a call moves something: `cpu`, `cuda:1`; `?` if that is not known."""
        if call.func.attr == "cpu":  # type: ignore[attr-defined]
            return "cpu"
        for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
            device = text_of_device(self.value(argument)[1])
            if device:
                return device
        return "?"

    def value(self, node: ast.AST) -> tuple[str, Any]:
        """The object behind an expression, and the shortest expression for its tensor; None if it is not known."""
        if isinstance(node, ast.Name):
            return node.id, self._variable(node.id)
        if isinstance(node, ast.Constant):
            return "", node.value
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Subscript):
            return self._element(node)
        if isinstance(node, ast.Call):
            return self._result(node)
        return "", None

    def _variable(self, name: str) -> Any:
        code = self.frame.f_code
        if name in self.given_out:
            return self.given_out[name]
        if name in self.values:
            return self.values[name]
        own = (*code.co_varnames, *code.co_cellvars, *code.co_freevars)
        return None if name in own else self.frame.f_globals.get(name)

    def _attribute(self, node: ast.Attribute) -> tuple[str, Any]:
        path, thing = self.value(node.value)
        if kinds.is_a(thing, torch.Tensor):  # `x.T` is where `x` is
            return (path, None if node.attr == "device" else thing) if node.attr not in _NO_TENSOR else (path, None)
        if thing is torch:
            found = torch.__dict__.get(node.attr)
            return "", found if type(found) is torch.dtype else None
        return f"{path}.{node.attr}", _field(thing, node.attr)

    def _element(self, node: ast.Subscript) -> tuple[str, Any]:
        path, thing = self.value(node.value)
        if kinds.is_a(thing, torch.Tensor):
            return path, thing
        key = self._size(node.slice) if isinstance(node.slice, _ASKING) else self.value(node.slice)[1]
        if isinstance(node.slice, ast.UnaryOp):
            key = _whole_number(node.slice)
        return f"{path}[{ast.unparse(node.slice)}]", _entry(thing, key) if kinds.is_one_of(key, _KEY_KINDS) else None

    def _size(self, node: ast.AST) -> Any:
        """The number of `x.size(1)`, `x.shape[1]` and `len(x)`; None for other expressions."""
        if isinstance(node, ast.Call):
            owner, axis = node.func, node.args[0] if len(node.args) == 1 and not node.keywords else None
            if isinstance(owner, ast.Name) and owner.id == "len" and axis is not None:
                owner, axis = ast.Attribute(axis, "size"), ast.Constant(0)
        else:
            owner, axis = node.value, node.slice  # type: ignore[attr-defined]
        if not isinstance(owner, ast.Attribute) or owner.attr not in ("size", "shape"):
            return self.value(node)[1] if isinstance(node, ast.Subscript) else None
        thing, at = self.value(owner.value)[1], _whole_number(axis)
        sizes = _sizes(thing)
        return sizes[at] if at is not None and -len(sizes) <= at < len(sizes) else None

    def _result(self, node: ast.Call) -> tuple[str, Any]:
        """`x.view(-1)` is where `x` is; `super()` is `self`."""
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            return "self", self._variable("self")
        if not isinstance(node.func, ast.Attribute) or node.func.attr in _MOVES | _NO_TENSOR or self._is_moving(node):
            return "", None
        path, thing = self.value(node.func.value)
        return (path, thing) if kinds.is_a(thing, torch.Tensor) else ("", None)


def _sizes(thing: Any) -> tuple[int, ...]:
    """Of torch's own classes: a class of the user may compute its shape, and a nested tensor has none."""
    is_plain = kinds.is_one_of(thing, OWN_TENSORS) and not thing.is_nested
    return tuple(map(int, thing.shape)) if is_plain else ()


def text_of_device(thing: Any) -> str:
    """`cuda:0` for a device or its name; `cuda` alone may be any, and gives nothing but in torch's own word for it."""
    if type(thing) is torch.device:
        return str(thing)
    return thing if type(thing) is str and thing.partition(":")[0] in ("cpu", "meta", "mps", "cuda", "xpu") else ""


def _whole_number(node: ast.AST | None) -> int | None:
    """Of `1` and `-1`."""
    minus = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    inner = node.operand if minus else node  # type: ignore[union-attr]
    number = inner.value if isinstance(inner, ast.Constant) else None
    return (-number if minus else number) if type(number) is int else None


def _asked(expression: ast.expr) -> ast.expr:
    """`x` for `x.numpy()`, where that is what failed."""
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
        return expression.func.value if expression.func.attr in _NO_TENSOR else expression
    return expression


def _counts(thing: Any) -> bool:
    return kinds.is_a(thing, torch.Tensor) or kinds.is_a(thing, torch.nn.Module)


def _field(thing: Any, name: str) -> Any:
    """An attribute, without running properties or `__getattr__`."""
    fields = kinds.fields_of(thing)
    for part in _MODULE_PARTS if kinds.is_a(thing, torch.nn.Module) else ():
        inner = fields.get(part)
        if kinds.is_registry(inner) and name in inner:
            return inner[name]
    return fields.get(name)


def _entry(thing: Any, key: Any) -> Any:
    """An element of exactly a dictionary, list or tuple, or a layer of a module."""
    if kinds.is_one_of(thing, DICTS):
        entries = list(dict.items(thing))
        return next((value for one, value in entries if type(one) is type(key) and one == key), None)
    if kinds.is_one_of(thing, LISTS) and type(key) is int:
        return thing[key] if -len(thing) <= key < len(thing) else None
    if kinds.is_a(thing, torch.nn.Module):
        layers = kinds.fields_of(thing).get("_modules")
        return layers.get(str(key)) if kinds.is_registry(layers) else None
    return None
