"""Model and data on different devices."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.facts import ErrorFact, OperandFact, Run, StaleStateFact, assigned, syntax
from torch_inspector.facts.given_moved import given_moved, moved_for_lambda
from torch_inspector.facts.given_together import given_together
from torch_inspector.facts.loaded_anew import loaded_anew
from torch_inspector.facts.looped import Looped, looped, with_call
from torch_inspector.facts.lost_moves import LostMove, lost_move
from torch_inspector.facts.made_in_line import Made, made_in
from torch_inspector.facts.made_on_meta import built_on_meta
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_KINDS = ("RuntimeError", "TorchRuntimeError", "NotImplementedError", "ValueError")
# What torch says when it refuses, whatever the devices are.
_REFUSALS = (
    "to be on the same device",
    "on the same device as the indexed tensor",
    "tensor are on the same device",
    "to be on same device",
    "to be in the same device",
    "not at the same device",
    "have the same device type",
    "to have the same device as tensor for",
    "is not on the expected device",
    "match the expected device",
    "to a storage on different device",
    "to be on GPU (while checking arguments",
    "Expected object of device type",
    "found two different devices",
)
# Said of data types too: `Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same`.
_TYPES_DIFFER = "should be the same"
_DEVICE = re.compile(r"\b(cpu|meta|(?:cuda|xpu|hpu|mps|npu|xla|mtia)(?::\d+)?)\b")
_TYPES = re.compile(r"torch\.(?:(cuda|xpu|mps)\.)?\w+Tensor")
_NO_DEVICE_NAMED = "either on cpu or "
_SHOWN, _TWO = 3, 2
_UNKNOWN = "x = x.to(device)  # the model's device, for every batch"


class _Spot(NamedTuple):
    """A tensor, a module, or a part of one, and where it is."""

    path: str
    device: str
    mover: str
    """What to move: the module, for a part of one."""
    operand: OperandFact


class _Cause(NamedTuple):
    """The tensor or module that is elsewhere, and why."""

    odd: _Spot
    source: Looped | None = None
    """What gives it out, if it is the variable of a comprehension: no line of its own could move it."""
    lost: LostMove | None = None

    def subject(self) -> str:
        """What the user calls it."""
        return (self.source.whole if self.source is not None else "") or self.odd.path


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds the operand that is on another device than the rest, when torch has refused to mix them."""
    error = run.error
    if error is None or error.kind not in _KINDS:
        return
    named, state = _devices_in(error.message), error.stale_state
    if state is not None and state.state_device != state.device and "device" in error.message:
        yield _of_state(error, state)
        return
    if not any(text in error.message for text in _REFUSALS) and not _types_differ(error.message, named):
        return
    yield _finding(run, error, [spot for operand in error.operands for spot in _spots(operand)], named)


def _of_state(error: ErrorFact, state: StaleStateFact) -> Finding:
    name = f"`{state.path}`" if state.path else f"the {state.kind} optimizer"
    return Finding(
        message=(
            f"{name} keeps `{state.state}` from when its weights were on {state.state_device}; they are on "
            f"{state.device} now, and {state.kind} does not mix devices."
        ),
        subject=state.path or state.kind,
        fix=loaded_anew(state, "its state goes where the weights are"),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence("weights", state.device), Evidence(state.state, state.state_device)),
    )


def _types_differ(message: str, named: tuple[str, ...]) -> bool:
    return _TYPES_DIFFER in message and len(named) > 1


def _devices_in(message: str) -> tuple[str, ...]:
    """Devices that the message names."""
    if _TYPES_DIFFER in message:
        return tuple(sorted({m[1] or "cpu" for m in _TYPES.finditer(message)}))
    return tuple(sorted(set(_DEVICE.findall(message.replace(_NO_DEVICE_NAMED, "")))))


def _spots(operand: OperandFact) -> list[_Spot]:
    """An operand; its parts, if it is a module on several devices. Tensors without dimensions may be anywhere."""
    if operand.parts:
        return [_Spot(f"{operand.path}.{name}", device, operand.path, operand) for name, device in operand.parts]
    if len(operand.devices) != 1 or operand.shape == ():
        return []
    return [_Spot(operand.path, operand.devices[0], operand.path, operand)]


def _same(one: str, other: str) -> bool:
    """`cuda` may be any of `cuda:0`, `cuda:1`."""
    return one == other or (one.partition(":")[0] == other.partition(":")[0] and ":" not in min(one, other, key=len))


def _home(spots: list[_Spot], named: tuple[str, ...]) -> str:
    """Where the rest is: an accelerator before the CPU, since what is forgotten stays there; modules before tensors."""
    away = [spot for spot in spots if spot.device != "cpu"]
    modules = [spot.device for spot in away if spot.operand.kind != "tensor"]
    found = Counter(modules or [spot.device for spot in away]).most_common(1)
    if found:
        return found[0][0]
    others = [device for device in named if device != "cpu"]
    return others[0] if spots and len(others) == 1 else ""


def _empty(run: Run, error: ErrorFact, spots: list[_Spot]) -> _Spot | None:
    """A module that was built without weights, by the name that the notebook knows it by."""
    if all(spot.device == "meta" for spot in spots):
        return None
    for spot in spots:
        if spot.device == "meta" and spot.operand.kind != "tensor":
            call = syntax.expression(error.caller) if spot.path.startswith("self.") else None
            name = ast.unparse(call.func) if isinstance(call, ast.Call) else spot.mover
            if built_on_meta(run, name.partition(".")[0].partition("[")[0]):
                return spot._replace(path=name, mover=name)
    return None


def _odd_one(spots: list[_Spot], home: str) -> _Spot | None:
    """What is not at home, first of all among what met in the failing operation; None if it could be any of several."""
    odd = [spot for spot in spots if not _same(spot.device, home)]
    met = [spot for spot in odd if not spot.operand.nested] or odd
    seen_at_home = len(odd) < len(spots)
    return met[0] if met and home and (seen_at_home or len(met) == 1) else None


def _finding(run: Run, error: ErrorFact, spots: list[_Spot], named: tuple[str, ...]) -> Finding:
    home = _home(spots, named)
    odd = _empty(run, error, spots) or _odd_one(spots, home)
    if odd is not None and odd.device == "meta":
        home = next((spot.device for spot in spots if spot.device != "meta"), "cpu")
    cause = _cause(run, error, odd, home) if odd is not None else None
    made = _made(error, spots, home, named) if odd is None else None
    return Finding(
        message=_message(cause, spots, named, home) if made is None else _said_of(made, home, spots, named),
        subject=cause.subject() if cause is not None else made.text if made is not None else "",
        fix=_whole_fix(run, error, cause, home) if cause is not None else made.statement if made else _UNKNOWN,
        line=error.place.line,
        cell=error.place.cell,
        evidence=tuple(Evidence(f"{spot.path} ({_kind(spot.operand)})", spot.device) for spot in spots),
    )


def _cause(run: Run, error: ErrorFact, odd: _Spot, home: str) -> _Cause:
    if odd.operand.kind != "tensor":
        return _Cause(odd)
    found = looped(run.source_of(error.place.cell), error.place.line, odd.path) if odd.path.isidentifier() else None
    if found is not None and any(operand.path == found.whole for operand in error.operands):
        found = found._replace(whole="")  # a list is not made of a tensor whose rows are given out, or of a module
    return _Cause(odd, found, lost_move(run, error, odd.operand, home))


def _whole_fix(run: Run, error: ErrorFact, cause: _Cause, home: str) -> str:
    odd, source, lost = cause
    target = _target(error, home)
    if odd.device == "meta" and odd.operand.kind != "tensor":
        return f"{odd.mover}.to_empty(device={target})  # then load its weights: on meta it has none"
    if lost is not None:
        return lost.fix
    # What has no owner may be a loader, which is not to be made a list.
    if source is not None and "." in source.whole:
        also = "; as buffers .to() would move them" if source.whole.startswith("self.") else ""
        return f"{source.changed(f'.to({target})')}  # before the line{also}"
    if source is not None:
        return f"{with_call(source.text, odd.path, f'.to({target})')}  # in place of {source.text}"
    moved = given_moved(run, error, odd.operand, target) or moved_for_lambda(run, error, odd.operand, target)
    return moved or _with_others(error, odd, target) + _elsewhere(run, error, odd.path)


def _with_others(error: ErrorFact, odd: _Spot, target: str) -> str:
    """The statement, and one for each tensor that was given with it: torch would refuse these next."""
    first = _fix(odd, target)
    if not (odd.path.isidentifier() or odd.path.endswith("]")) or odd.operand.kind != "tensor" or "  #" in first:
        return first
    also = [_Spot(one.path, odd.device, one.path, one) for one in given_together(error, odd.operand)]
    return "\n".join([first, *(fix for one in also if "  #" not in (fix := _fix(one, target)))])


def _made(error: ErrorFact, spots: list[_Spot], home: str, named: tuple[str, ...]) -> Made | None:
    """What the line makes itself, where all that it names is at home."""
    tensors = [spot.path for spot in spots if spot.operand.kind == "tensor"]
    if not tensors or len(named) != _TWO or not all(_same(spot.device, home) for spot in spots):
        return None
    return made_in(error.expression, error.statement, [spot.path for spot in spots], f"{tensors[0]}.device")


def _said_of(made: Made, home: str, spots: list[_Spot], named: tuple[str, ...]) -> str:
    other = next((device for device in named if not _same(device, home)), "another device")
    return f"`{made.text}` is on {other}, {_rest(spots, home)} on {home}: torch does not mix devices."


def _rest(spots: list[_Spot], home: str) -> str:
    return ", ".join([f"`{spot.path}`" for spot in spots if _same(spot.device, home)][:_SHOWN]) or "the rest"


def _message(cause: _Cause | None, spots: list[_Spot], named: tuple[str, ...], home: str) -> str:
    if cause is None:
        return f"tensors on {' and '.join(named) if len(named) > 1 else 'different devices'} met in one operation."
    odd, source, lost = cause
    who = f"`{odd.path}` of `{source.whole}`" if source is not None and source.whole else f"`{odd.path}`"
    known = odd.operand.known_as if odd.operand.kind == "tensor" and source is None else ""
    who += f" (`{known}` in the call)" if known and known != odd.path else ""
    why = f"; {lost.said}" if lost is not None else ""
    return f"{who} is on {odd.device}, {_rest(spots, home)} on {home}: torch does not mix devices{why}."


def _kind(operand: OperandFact) -> str:
    return f"tensor {operand.shape}" if operand.kind == "tensor" else operand.kind


def _target(error: ErrorFact, home: str) -> str:
    """The user's own name for the device, if there is one."""
    names = [name for name, device in error.device_names if _same(device, home)]
    return names[0] if names else f'"{home}"'


def _elsewhere(run: Run, error: ErrorFact, name: str) -> str:
    """A word on where the line belongs, for a variable of the notebook that a function only reads."""
    tree, line = syntax.parse(run.source_of(error.place.cell)), error.place.line or 0
    around = [
        node
        for node in (syntax.walk(tree) if tree is not None else ())
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not around or not name.isidentifier() or any(name in _own_names(node) for node in around):
        return ""
    return f"  # where it is made, not in {around[-1].name}()"


def _own_names(function: ast.FunctionDef) -> set[str]:
    nodes = list(syntax.walk(function))
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return stored | {node.arg for node in nodes if isinstance(node, ast.arg)}


def _fix(odd: _Spot, target: str) -> str:
    if odd.operand.kind != "tensor":
        return f"{odd.mover}.to({target})"
    if odd.path.endswith(")"):
        return f"{odd.path.rpartition('.')[0]}.to({target})  # instead of {odd.path}"
    owner, _, name = odd.path.rpartition(".")
    if owner == "self" and name.isidentifier():
        return f'self.register_buffer("{name}", ...)  # in __init__, so that .to() moves it with the module'
    if odd.path.endswith("]"):
        return assigned(odd.path, f"{{}}.to({target})")
    return f"{odd.path} = {odd.path}.to({target})"
