"""A second run of the modules that a loss comes from, operation by operation: where it stops to be finite.

Only under `%%torchcheck`, once per cell, for a loss that is not finite, at the moment at which `backward()` is called
on it: the weights are then those that the loss was computed with, and what the modules were given has its names. What
runs is a copy; random numbers are drawn from a copy of the state, and nothing of the user's is written to.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

from torch_inspector.facts import OperationFact, Place, syntax
from torch_inspector.observe import layers, private
from torch_inspector.observe.handles import uncounted
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.kinds import is_a, is_one_of
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.operands import Names
from torch_inspector.observe.ranges import Range, range_of, tensors_in
from torch_inspector.observe.shadows import shadow_of
from torch_inspector.observe.versions import version_of

if TYPE_CHECKING:
    from torch_inspector.observe.place import Places

# Seconds for one second run, operations in it, numbers that it may be given.
_SECONDS, _OPERATIONS, _ELEMENTS = 2.0, 20_000, 4_000_000
# Calls of modules in one function that are tried.
_CALLS = 4
# Frames between an operation and this file.
_DEPTH = 200
# Operations as the user may have written them.
_WORDS = {
    "div": "/", "mul": "*", "add": "+", "sub": "-", "rsub": "-", "pow": "**", "mm": "@", "bmm": "@", "matmul": "@",
    "native_layer_norm": "layer_norm", "native_batch_norm": "batch_norm", "native_group_norm": "group_norm",
    "linalg_vector_norm": "norm", "safe_softmax": "softmax", "truediv": "/", "divide": "/",
}  # fmt: skip
# Methods of tensors that hand values on.
_HANDS_ON = frozenset(
    ("view", "reshape", "flatten", "float", "unsqueeze", "squeeze", "permute", "transpose", "t", "contiguous", "clone")
)

Resting = Callable[[], AbstractContextManager[None]]
"""A block in which calls of modules are not noted."""


class _Stop(Exception):  # noqa: N818  (ends a run that has shown enough)
    """Enough is known."""


class _Unknown(Exception):  # noqa: N818
    """An expression cannot be worked out without running code of the user."""


def second_look(frame: FrameType, places: Places, resting: Resting) -> OperationFact | None:
    """The first operation in a second run that makes something not finite of finite numbers.

    Args:
        frame: Calls `backward()`.
        places: The cells.
        resting: A block in which calls of modules are not noted.

    Returns:
        The operation with its layer; None if it is not met, or a second run may do more than compute.
    """
    user = places.user_frame(frame)
    file = places.file_of(user) if user is not None else None
    if user is None or file is None or file.tree is None or private.under_a_mode():
        return None
    scope = syntax.scope_at(file.tree, user.f_lineno)
    with locals_of(user) as values, resting(), _untouched():
        done = 0
        for call in _calls(scope, user.f_lineno):
            run = _Run(Names(values, user.f_globals), places)
            try:
                with torch.no_grad():
                    run.result(call)
            except _Stop:
                return run.watch.found
            except _Unknown:
                continue
            done += 1
            if done >= _CALLS:
                break
    return None


@contextmanager
def _untouched() -> Iterator[None]:
    """A block after which the random numbers go on as if it had not been."""
    state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)


def _calls(scope: ast.AST, line: int) -> list[ast.Call]:
    """Calls that may be of modules, before a line, whose names mean now what they meant then."""
    branches = (one for one in syntax.walk(scope) if isinstance(one, (ast.If, ast.IfExp, ast.Match, ast.Try)))
    optional = {id(inner) for branch in branches for inner in syntax.walk(branch)}
    found = []
    for node in sorted(syntax.own_statements(scope), key=lambda one: getattr(one, "lineno", 0)):
        if (
            isinstance(node, ast.stmt)
            and not hasattr(node, "body")
            and node.lineno <= line
            and id(node) not in optional
        ):
            stored = _stored(scope, node.lineno, line)
            calls = [one for one in syntax.walk(node) if isinstance(one, ast.Call)]
            names = ({n.id for n in syntax.walk(one) if isinstance(n, ast.Name)} for one in calls)
            found += [one for one, its in zip(calls, names, strict=True) if not its & stored]
    return found


def _stored(scope: ast.AST, first: int, last: int) -> set[str]:
    """Names that are given a value in some lines."""
    nodes = (n for n in syntax.walk(scope) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    return {n.id for n in nodes if first <= n.lineno <= last}


class _Run:
    """One call of a module, run again with a copy of it and of what it is given."""

    def __init__(self, names: Names, places: Places) -> None:
        self._names = names
        self._places = places
        self._left = _ELEMENTS
        self.watch = _Watch(places)

    def result(self, call: ast.expr) -> Any:
        """What a call of a module gives."""
        module = self._names.value(call.func) if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or not is_a(module, nn.Module):
            raise _Unknown
        arguments = [self._given(one) for one in call.args]
        named = {one.arg: self._given(one.value) for one in call.keywords if one.arg}
        shadow = shadow_of(module, self._places) if len(named) == len(call.keywords) else None
        if shadow is None:
            raise _Unknown
        before = _marks(module)
        self.watch.follow(shadow, ast.unparse(call.func))
        try:
            with self.watch:
                return shadow(*arguments, **named)
        except _Stop:
            raise
        except Exception:  # noqa: BLE001  (what a copy cannot do is no matter of the user's)
            raise _Unknown from None
        finally:
            if _marks(module) != before:
                message = "a second run has changed a module"
                raise RuntimeError(message)

    def _given(self, expression: ast.expr) -> Any:
        """What a module is given: copies of tensors, plain values, results of other modules."""
        value = self._names.value(expression)
        if is_one_of(value, (int, float, bool, str, type(None))):
            return value
        if is_one_of(value, (torch.Tensor, nn.Parameter)):
            return self._copied(value)
        if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
            name, owner = expression.func.attr, expression.func.value
            arguments = [self._names.value(one) for one in expression.args]
            if name in _HANDS_ON and not expression.keywords and all(type(one) is int for one in arguments):
                tensor = self._given(owner)
                if type(tensor) is torch.Tensor:
                    return getattr(tensor, name)(*arguments)
        return self.result(expression)

    def _copied(self, tensor: torch.Tensor) -> torch.Tensor:
        self._left -= tensor.numel()
        if self._left < 0 or not is_in_memory(tensor):
            raise _Unknown
        return tensor.detach().clone()


class _Mark(NamedTuple):
    """What a second run must leave as it is."""

    versions: tuple[tuple[int, int, int], ...]
    modes: tuple[bool, ...]


def _marks(module: Any) -> _Mark:
    """Addresses and counts of changes of all tensors of a module, and the modes of its layers."""
    tensors, modes = [], []
    for _, one in layers.walk_modules(module):
        fields = vars(one)
        modes.append(bool(fields.get("training")))
        for part in ("_parameters", "_buffers"):
            tensors += [value for value in fields.get(part, {}).values() if value is not None]
    return _Mark(tuple((id(one), version_of(one), one.data_ptr()) for one in tensors), tuple(modes))


class _Watch(private.DispatchMode):
    """Stops at the first operation that makes something not finite of finite numbers."""

    def __init__(self, places: Places) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._places = places
        self._stack: list[str] = []
        self._deadline = perf_counter() + _SECONDS
        self._left = _OPERATIONS
        self.found: OperationFact | None = None

    def follow(self, shadow: nn.Module, name: str) -> None:
        """Has the layers of a copy say when they run."""
        for path, layer in layers.walk_modules(shadow):
            parts = (f"[{one}]" if one.isdigit() else f".{one}" for one in path.split(".") if one)
            full = name + "".join(parts)
            uncounted(layer.register_forward_pre_hook(lambda *_, full=full: self._stack.append(full)))
            uncounted(layer.register_forward_hook(lambda *_: self._stack.pop() and None))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs one operation and looks at what it gives."""
        self._left -= 1
        if self._left < 0 or perf_counter() > self._deadline:
            raise _Unknown
        name = str(func).split(".")[1].strip("_")  # of `aten._softmax.default`
        # Looked at first: the operation may write into it.
        given = [range_of(one) for one in tensors_in((args, kwargs or {}))]
        result = func(*args, **(kwargs or {}))
        # Only the first result: others may be room to work in, with whatever was there.
        made = next(tensors_in(result), None)
        bad = range_of(made) if made is not None else Range()
        if not bad.bad(name) or name.startswith(("empty", "new_empty")):
            return result
        if all(not one.bad(name) for one in given) and not _is_written(name):
            self.found = self._fact(name, given, bad)
        raise _Stop

    def _fact(self, name: str, given: list[Range], bad: Range) -> OperationFact:
        word = _WORDS.get(name, name)
        extreme = max((one.extreme for one in given if one.size), default=None)
        result = "nan" if bad.nan else "inf" if bad.inf else "-inf"
        cause, zeros = "", given[-1].zeros if given else 0
        if word == "/" and zeros and len(given) > 1:
            cause = "zeros to divide by"
        elif word.startswith("log") and word in ("log", "log2", "log10") and zeros:
            cause = "zeros"
        count, total = (zeros, given[-1].size) if cause else (bad.nan or bad.inf or bad.low, bad.size)
        layer = self._stack[-1] if self._stack else ""
        return OperationFact(
            word, cause, count, total, result, layer, self._place(), extreme=None if cause else extreme
        )

    def _place(self) -> Place | None:
        """The line of the user's own code in the second run, not that which began it."""
        frame: FrameType | None = sys._getframe(1)
        for _ in range(_DEPTH):
            if frame is None or frame.f_code is _Run.result.__code__:
                return None
            if self._places.file_of(frame) is not None:
                return self._places.place(frame, frame.f_lineno)
            frame = frame.f_back
        return None


def _is_written(name: str) -> bool:
    """True for operations that write down a number that the code names, infinity as well."""
    return name.startswith(("full", "fill", "masked_fill", "scalar_tensor", "lift_fresh", "new_full", "zero"))
