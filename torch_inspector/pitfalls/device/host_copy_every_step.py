"""A constant that is built on the host and moved in each step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import Place, Run, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Fewer steps are a try.
_STEPS = 8
_MAKERS = ("tensor", "as_tensor", "zeros", "ones", "full", "linspace", "arange", "eye", "from_numpy", "logspace")
_MOVES = ("to", "cuda")


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds, in the loop around the steps of training on an accelerator, tensors made of constants and then moved."""
    devices = sorted({device for call in run.trace.forwards for device in call.input_devices if device != "cpu"})
    steps = max(run.trace.count("backward"), run.trace.count("step"))
    if not devices or steps < _STEPS:
        return
    said: set[Place] = set()
    for place in sorted(run.trace.training_places(), key=lambda one: (one.cell or 0, one.line or 0)):
        for line, name, text in _copies(run, place):
            here = Place(place.cell, line, place.function)
            if here not in said:
                said.add(here)
                yield _finding(here, name or text, text, steps, devices[0])


def _copies(run: Run, place: Place) -> Iterator[tuple[int, str, str]]:
    """Line, variable and text of each such tensor in the innermost loop around a place."""
    past = next((one for one in (run, *reversed(run.earlier)) if one.cell.number == place.cell), None)
    if past is None or place.line is None or not any(f".{name}(" in past.cell.code for name in _MOVES):
        return
    loop = syntax.loop_around(past.cell.code, place.line - past.cell.line_offset)
    if loop is None:
        return
    bound = {n.id for n in syntax.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in (one for part in loop.body for one in syntax.walk(part)):
        value = node.value if isinstance(node, ast.Assign) else node
        if isinstance(value, ast.Call) and _is_copy(value) and not _names(value) & bound:
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            name = target.id if isinstance(target, ast.Name) else ""
            yield value.lineno + past.cell.line_offset, name, ast.unparse(value)


def _is_copy(call: ast.Call) -> bool:
    """True for `torch.zeros(3).to(device)`; what is made on the device itself is no copy."""
    made = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr in _MOVES else None
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute) or made.func.attr not in _MAKERS:
        return False
    is_torch = isinstance(made.func.value, ast.Name) and made.func.value.id == "torch"
    # A call among the arguments may give something new each time.
    return is_torch and not any(isinstance(n, ast.Call) for a in made.args for n in syntax.walk(a))


def _names(call: ast.Call) -> set[str]:
    return {node.id for node in syntax.walk(call) if isinstance(node, ast.Name)}


def _finding(place: Place, name: str, text: str, steps: int, device: str) -> Finding:
    return Finding(
        message=f"`{name}` is made on the host and moved to {device} in each of {steps} steps, always the same.",
        subject=name,
        fix=f"{name} = {text}  # once, before the loop" if name != text else f"constant = {text}  # before the loop",
        line=place.line,
        cell=place.cell,
        evidence=(
            Evidence("made in each step", text),
            Evidence("steps", steps, "count"),
            Evidence("device", device),
        ),
    )
