"""Values read from an accelerator in each step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import Place, Run, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Fewer steps are a try.
_STEPS = 16
# One read in a long step is cheap: from so many reads per step on, or in steps shorter than this, it is told.
_READS = 4
_SHORT_S = 0.005
_READERS = ("item", "tolist", "numpy")
_ACCELERATORS = ("cuda", "mps", "xpu")


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds reads of values in the loop around the steps of training on an accelerator; the CPU has no queue."""
    devices = {device for call in run.trace.forwards for device in call.input_devices}
    device = next((one for one in sorted(devices) if one.startswith(_ACCELERATORS)), None)
    if device is None:
        return
    steps = max(run.trace.count("backward"), run.trace.count("step"))
    if steps < _STEPS:
        return
    for place in sorted(run.trace.training_places(), key=lambda one: (one.cell or 0, one.line or 0)):
        reads = _reads(run, place)
        if reads and (len(reads) >= _READS or run.duration_s / steps < _SHORT_S):
            yield _finding(run, Place(place.cell, reads[0][0], place.function), reads, steps, device)
            return


def _reads(run: Run, place: Place) -> list[tuple[int, str]]:
    """Line and text of the reads in the innermost loop around a place, those left out that are made now and then."""
    past = next((one for one in (run, *reversed(run.earlier)) if one.cell.number == place.cell), None)
    if past is None or place.line is None or not any(f".{name}(" in past.cell.code for name in _READERS):
        return []
    loop = syntax.loop_around(past.cell.code, place.line - past.cell.line_offset)
    found = _read_under(loop) if loop is not None else []
    return sorted((call.lineno + past.cell.line_offset, ast.unparse(call)) for call in found)


def _read_under(loop: ast.For | ast.While) -> list[ast.Call]:
    found: list[ast.Call] = []
    stack: list[ast.AST] = [*loop.body]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _READERS:
            found.append(node)
        if isinstance(node, ast.If) and _is_now_and_then(node.test):
            stack.extend(node.orelse)
        elif not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.For, ast.While)):
            stack.extend(syntax.children(node))
    return found


def _is_now_and_then(test: ast.expr) -> bool:
    """True for `step % 100 == 0`, and for what is decided outside of the loop: `if verbose`."""
    return isinstance(test, ast.Name) or any(isinstance(node, ast.Mod) for node in syntax.walk(test))


def _finding(run: Run, place: Place, reads: list[tuple[int, str]], steps: int, device: str) -> Finding:
    texts = list(dict.fromkeys(text for _, text in reads))
    name = texts[0].rpartition(".")[0]
    times = "once" if len(reads) == 1 else f"{len(reads)} times"
    return Finding(
        message=f"`{texts[0]}` makes the host wait for {device}: values are read {times} in each of {steps} steps.",
        subject=name,
        fix=f"total += {name}.detach()  # in the loop, and total.item() once after it, or every 100 steps",
        line=place.line,
        cell=place.cell,
        evidence=(
            Evidence("reads per step", len(reads), "count"),
            Evidence("reads", ", ".join(texts[:3])),
            Evidence("steps", steps, "count"),
            Evidence("time per step", run.duration_s / steps, "s"),
        ),
    )
