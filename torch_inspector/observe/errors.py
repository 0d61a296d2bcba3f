"""The exception that ended a cell: where, and what the failing expression named."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

from torch_inspector.facts import (
    ErrorFact,
    ForeignFact,
    FrozenFact,
    LayerFact,
    NamedFact,
    OperandFact,
    OutsideFact,
    Place,
    ShortageFact,
    StaleStateFact,
)
from torch_inspector.observe import kinds
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.sources_of import Sources

if TYPE_CHECKING:
    from torch_inspector.observe.failing import Named, Scope
    from torch_inspector.observe.place import Places

_MESSAGE_LIMIT = 2_000
_OPERANDS, _WAY = 12, 20
# In messages of layers that refuse their input.
_OF_LAYERS = (
    "was expecting embedding dimension of", "value per channel", "spatial element", "mat1 and mat2 shapes",
    "Given groups=", "batched) input to conv", "Given transposed=", "input.size(-1) must be equal",
    "running_mean should contain", "Given normalized_shape=", "D input (got ", "index out of range in self",
    "Expected hidden",
)  # fmt: skip
_LEAFLESS = ("can't optimize a non-leaf Tensor", "support the deepcopy protocol")
_OF_STATES = ("dtype", "scalar type", "device")
_EMPTY = "optimizer got an empty parameter list"
_OUTSIDE = "all elements of input should be between 0 and 1"
# Asked past the exception's own class, which may define properties of these names.
_TRACEBACK: Any = BaseException.__dict__["__traceback__"]
_ARGUMENTS: Any = BaseException.__dict__["args"]
# What people call the device they work on.
_DEVICE_NAMES = ("device", "dev", "DEVICE", "self.device")


def error_fact(error: BaseException, places: Places) -> ErrorFact:
    """What is known of an exception without running code of its class."""
    entries = _of_user(error, places)
    entry, caller = (*entries[:2], None, None)[:2]
    operands, devices = _named(error, entry, places) if entry is not None else ((), ())
    statement, expression = _texts(entry, places) if entry is not None else ("", "")
    return ErrorFact(
        kind=kinds.class_name(error),
        message=_message(error),
        place=places.place(entry.tb_frame, entry.tb_lineno) if entry is not None else Place(),
        operands=operands,
        interrupted=kinds.is_a(error, KeyboardInterrupt),
        device_names=devices,
        shortage=_shortage(error, places),
        statement=statement,
        expression=expression,
        caller=_texts(caller, places)[1] if caller is not None else "",
        way=tuple(places.place(one.tb_frame, one.tb_lineno) for one in entries[1:_WAY]),
        layer=_layer(error, places),
        leafless=_leafless(error, places),
        outside=_outside(error),
        frozen=_frozen(_message(error), entry, places) if entry is not None else None,
        foreign=_foreign(_message(error), entry, places) if entry is not None else (),
        stale_state=_stale_state(error, entry) if entry is not None else None,
    )


def _foreign(message: str, entry: TracebackType, places: Places) -> tuple[ForeignFact, ...]:
    """Arguments that are no tensors, where the message may be about such."""
    file = places.file_of(entry.tb_frame)
    if "torch" not in sys.modules or file is None or file.tree is None:
        return ()
    from torch_inspector.observe import failing, non_tensors, private
    from torch_inspector.observe.given_out import with_given_out

    if not non_tensors.is_meant(message):
        return ()
    expressions, origins = failing.failing_expressions(file.tree, entry), Sources(entry, places)
    with locals_of(entry.tb_frame) as values, private.unseen():
        scope = with_given_out(failing.Scope(values, entry.tb_frame), file.tree, entry, expressions)
        found = [one for e in expressions[:1] for one in non_tensors.foreign(scope, e, message)]
        return tuple(fact._replace(known_as=origins.known_as(thing)) for fact, thing in found)


def _layer(error: BaseException, places: Places) -> LayerFact | None:
    """The layer that refused its input, where the message is about the statistics or the shape of a batch."""
    message = _message(error)
    if not any(text in message for text in _OF_LAYERS):
        return None
    from torch_inspector.observe.running import running_layer

    return running_layer(error, places)


def _leafless(error: BaseException, places: Places) -> NamedFact | None:
    """The computed tensor that was refused, where only a leaf is taken."""
    if not any(text in _message(error) for text in _LEAFLESS):
        return None
    from torch_inspector.observe import private
    from torch_inspector.observe.leafless import leafless_fact

    with private.unseen():
        return leafless_fact(error, places)


def _frozen(message: str, entry: TracebackType, places: Places) -> FrozenFact | None:
    """The model whose parameters were all left out, where an optimizer was given none."""
    file = places.file_of(entry.tb_frame)
    if message != _EMPTY or file is None:
        return None
    from torch_inspector.observe import private
    from torch_inspector.observe.all_frozen import frozen_fact

    with private.unseen():
        return frozen_fact(file, entry)


def _outside(error: BaseException) -> OutsideFact | None:
    """What a binary loss refused, if it did."""
    if _OUTSIDE not in _message(error):
        return None
    from torch_inspector.observe import private
    from torch_inspector.observe.outside import outside_fact

    with private.unseen():
        return outside_fact(error)


def _stale_state(error: BaseException, entry: TracebackType) -> StaleStateFact | None:
    """What an optimizer remembers from before, where the message may be about such."""
    if "torch" not in sys.modules or not any(word in _message(error) for word in _OF_STATES):
        return None
    from torch_inspector.observe import private
    from torch_inspector.observe.stale_state import stale_state

    with private.unseen():
        return stale_state(error, entry.tb_frame)


def _shortage(error: BaseException, places: Places) -> ShortageFact | None:
    """The allocation that failed, if that is behind the exception."""
    if "torch" not in sys.modules:
        return None
    from torch_inspector.observe.shortage import shortage_fact

    return shortage_fact(error, places)


def _texts(entry: TracebackType, places: Places) -> tuple[str, str]:
    """The statement and the expression that failed."""
    file = places.file_of(entry.tb_frame)
    if "torch" not in sys.modules or file is None or file.tree is None:
        return "", ""
    from torch_inspector.observe.failing import failing_texts

    return failing_texts(file.tree, entry)


def _message(error: BaseException) -> str:
    arguments = _ARGUMENTS.__get__(error)
    if len(arguments) == 1 and type(arguments[0]) is str:
        return arguments[0][:_MESSAGE_LIMIT]
    return ""


def _of_user(error: BaseException, places: Places) -> list[TracebackType]:
    """The entries of the traceback that are in cells, the innermost first."""
    found: list[TracebackType] = []
    entry: TracebackType | None = _TRACEBACK.__get__(error)
    while entry is not None:
        if places.file_of(entry.tb_frame) is not None:
            found.append(entry)
        entry = entry.tb_next
    return found[::-1]


_Named = tuple[tuple[OperandFact, ...], tuple[tuple[str, str], ...]]


def _named(error: BaseException, entry: TracebackType, places: Places) -> _Named:
    """Tensors and modules that the failing expression names, and variables that hold a device."""
    file = places.file_of(entry.tb_frame)
    if "torch" not in sys.modules or file is None or file.tree is None:
        return (), ()
    from torch_inspector.observe import failing, private
    from torch_inspector.observe.behind import behind
    from torch_inspector.observe.given_out import with_given_out

    failed = failing.failing_expressions(file.tree, entry)
    expressions = behind(file.tree, entry.tb_lineno, failed, _message(error))
    with locals_of(entry.tb_frame) as values, private.unseen():
        scope = with_given_out(failing.Scope(values, entry.tb_frame), file.tree, entry, failed)
        return _facts(scope, expressions, Sources(entry, places))


def _facts(scope: Scope, expressions: list[Any], origins: Sources) -> _Named:
    import ast

    from torch_inspector.observe.failing import text_of_device

    named = [one for expression in expressions for one in scope.named(expression)]
    operands = tuple(_traced(scope, one, origins) for one in named[:_OPERANDS] if one.device != "?")
    devices = ((name, scope.value(ast.parse(name, mode="eval").body)[1]) for name in _DEVICE_NAMES)
    return operands, tuple((name, text_of_device(device)) for name, device in devices if text_of_device(device))


def _traced(scope: Scope, named: Named, origins: Sources) -> OperandFact:
    """An operand with where it comes from; of a comprehension's variable the lines and names around it tell nothing."""
    root = named.path.partition(".")[0].partition("[")[0]
    fact = origins.add(_operand(named), None if root in scope.alike else named.thing)
    return fact._replace(made_at=None) if root in scope.given_out else fact


def _operand(named: Named) -> OperandFact:
    import torch

    from torch_inspector.observe import as_torch
    from torch_inspector.observe.shapes import shape_of

    path, thing, nested, device = named
    if kinds.is_a(thing, torch.Tensor):
        dtype = str(as_torch.dtype(thing)).removeprefix("torch.")
        fact = OperandFact(path, "tensor", (device or str(as_torch.device(thing)),), shape_of(thing), dtype, nested)
        inference = as_torch.is_inference(thing)
        return fact._replace(
            requires_grad=as_torch.requires_grad(thing), is_leaf=as_torch.is_leaf(thing), inference=inference
        )
    kind, parts = kinds.class_name(thing), _parts(thing)
    if device:
        return OperandFact(path, kind, (device,), None, "", nested)
    devices = tuple(sorted({one for _, one, _ in parts}))
    # Of a module that is all in one place the module is named, but for a loss: it has nothing but buffers.
    told = len(devices) > 1 or not any(is_parameter for _, _, is_parameter in parts)
    firsts = {one: name for name, one, _ in reversed(parts)} if told else {}
    named_parts = tuple((n, d) for d, n in sorted(firsts.items()))
    fact = OperandFact(path, kind, devices, None, "", nested, named_parts, weight_dtype=_weight_dtype(thing))
    return fact if any(is_parameter for _, _, is_parameter in parts) else fact._replace(buffer_dtypes=_buffers(thing))


def _buffers(module: Any) -> tuple[tuple[str, str], ...]:
    """The floating point buffers of a module's own, as the `weight` of a loss, and their types."""
    import torch

    from torch_inspector.observe import as_torch

    own = kinds.fields_of(module).get("_buffers")
    tensors = (
        [(name, one) for name, one in own.items() if kinds.is_a(one, torch.Tensor)] if kinds.is_registry(own) else []
    )
    types = ((name, str(as_torch.dtype(one))) for name, one in tensors if as_torch.dtype(one).is_floating_point)
    return tuple((name, dtype.removeprefix("torch.")) for name, dtype in types)


def _weight_dtype(module: Any) -> str:
    """The one floating point type of a module's parameters; empty if there are several, or none."""
    from torch_inspector.observe import as_torch, layers

    found = {str(as_torch.dtype(p)) for _, p in layers.walk_parameters(module) if as_torch.dtype(p).is_floating_point}
    return found.pop().removeprefix("torch.") if len(found) == 1 else ""


def _parts(module: Any) -> list[tuple[str, str, bool]]:
    """Name and device of the parameters and buffers of a module, and which is a parameter."""
    from torch_inspector.observe import as_torch, layers

    found = [(name, str(as_torch.device(parameter)), True) for name, parameter in layers.walk_parameters(module)]
    for prefix, one in layers.walk_modules(module):
        buffers = kinds.fields_of(one).get("_buffers")
        for name, buffer in buffers.items() if kinds.is_registry(buffers) else ():
            # Counters without dimensions may be anywhere.
            if buffer is not None and as_torch.dim(buffer):
                device = str(as_torch.device(buffer))
                found.append((f"{prefix}.{name}" if prefix else str(name), device, False))
    return found
