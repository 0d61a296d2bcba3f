"""CUDA written into the code, on a machine where torch finds none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, Run, restated
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_NONE = "Cannot access accelerator device when none is available"
_REFUSED = re.compile(
    rf"Torch not compiled with CUDA enabled|Found no NVIDIA driver|No CUDA GPUs are available|{_NONE}"
)
_CHOICE = 'device = "cuda" if torch.cuda.is_available() else "cpu"'
_CALL, _LITERAL = re.compile(r"\.cuda\((?:\d+|device=\d+)?\)"), re.compile(r"""(['"])cuda(?::\d+)?\1""")


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds what asked for CUDA in a cell that failed by it, and the choice of a device in its place."""
    error = run.error
    told = _REFUSED.search(error.message) if error is not None else None
    if error is None or told is None or error.kind not in ("AssertionError", "RuntimeError"):
        return
    if told[0] == _NONE and "cuda" not in error.expression and not _named(error):
        return
    what = f"`{error.expression}`" if error.expression else "this line"
    yield Finding(
        message=f"{what} asks for CUDA, and torch finds none here: {_why(told[0])}.",
        subject=_named(error) or error.expression,
        fix=_fix(error),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence("torch says", told[0]),),
    )


def _why(told: str) -> str:
    if told.startswith("Torch"):
        return "this torch is built without CUDA"
    return "there is no driver" if "driver" in told else "this process sees no such device"


def _named(error: ErrorFact) -> str:
    """The variable that holds the device, if the expression uses one."""
    names = (name for name, device in error.device_names if device.startswith("cuda"))
    return next((name for name in names if re.search(rf"\b{re.escape(name)}\b", error.expression)), "")


def _fix(error: ErrorFact) -> str:
    name = _named(error)
    if name:
        return _CHOICE.replace("device", name, 1)
    text = _LITERAL.sub("device", _CALL.sub(".to(device)", error.expression))
    return f"{_CHOICE}\n{restated(error, text)}" if text != error.expression else f"{_CHOICE}  # and use it everywhere"
