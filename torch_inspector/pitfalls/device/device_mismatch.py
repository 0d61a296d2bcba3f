"""Model and data on different devices."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from torch_inspector.facts import OperandFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_MESSAGES = (
    "on the same device",
    "is not on the expected device",
    "should be the same",
    "don't match the expected device",
    "does not match the expected device",
)
_DEVICE = re.compile(r"\b(cpu|meta|mps|(?:cuda|xpu|hpu|mps)(?::\d+)?)\b")
_TYPES = re.compile(r"torch\.(?:(cuda)\.)?\w+Tensor")


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds the operand that is on another device than the rest, when torch has refused to mix them."""
    error = run.error
    if error is None or error.kind not in ("RuntimeError", "TorchRuntimeError", "NotImplementedError"):
        return
    devices = _devices_in(error.message)
    if not any(text in error.message for text in _MESSAGES) or (devices is not None and len(devices) < 2):  # noqa: PLR2004
        return
    known = [o for o in error.operands if len(o.devices) == 1 and o.shape != ()]
    if devices is None and len({o.devices[0] for o in known}) < 2:  # noqa: PLR2004
        return
    yield _finding(run, known, devices or ())


def _devices_in(message: str) -> tuple[str, ...] | None:
    """Devices that the message names; None if it names none."""
    if "should be the same" in message:
        return tuple(sorted({"cuda" if m[1] else "cpu" for m in _TYPES.finditer(message)}))
    named = tuple(sorted(set(_DEVICE.findall(message))))
    return named or None


def _odd_ones(operands: list[OperandFact]) -> tuple[list[OperandFact], str]:
    """Operands that are not where the others are, and where those are.

    A module decides, then an accelerator before the CPU: what was forgotten is usually a tensor left on the CPU.
    """
    modules = [o.devices[0] for o in operands if o.kind != "tensor"]
    elsewhere = [o.devices[0] for o in operands if o.devices[0] != "cpu"]
    wanted = Counter(modules or elsewhere).most_common(1)
    home = wanted[0][0] if wanted else ""
    return [o for o in operands if o.devices[0] != home], home


def _finding(run: Run, operands: list[OperandFact], devices: tuple[str, ...]) -> Finding:
    odd, home = _odd_ones(operands)
    place = run.error.place if run.error else None
    if odd and home:
        rest = ", ".join(f"`{o.path}`" for o in operands if o not in odd)
        message = (
            f"`{odd[0].path}` is on {odd[0].devices[0]}, {rest or 'the rest'} on {home}: torch does not mix devices."
        )
    else:
        message = f"tensors on {' and '.join(devices) or 'different devices'} met in one operation."
    return Finding(
        message=message,
        subject=odd[0].path if odd else "",
        fix=_fix(odd[0], home) if odd and home else "x = x.to(device)  # the model's device, for every batch",
        line=place.line if place else None,
        cell=place.cell if place else None,
        evidence=tuple(Evidence(f"{o.path} ({_kind(o)})", o.devices[0]) for o in operands),
    )


def _kind(operand: OperandFact) -> str:
    return f"tensor {operand.shape}" if operand.kind == "tensor" else operand.kind


def _fix(odd: OperandFact, home: str) -> str:
    owner, _, name = odd.path.rpartition(".")
    if odd.kind != "tensor":
        return f'{odd.path}.to("{home}")'
    if owner == "self":
        return f'self.register_buffer("{name}", ...)  # in __init__, so that .to() moves it with the module'
    return f'{odd.path} = {odd.path}.to("{home}")'
