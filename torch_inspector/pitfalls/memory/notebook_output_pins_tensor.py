"""A tensor echoed by a cell stays in the output cache."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import HolderFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Below this it is not worth more than a hint, whatever the user's own threshold says.
_LARGE_NBYTES = 1 << 20


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds entries of `Out` that came to be the only holder of memory in this cell."""
    before = {holder.path: holder.nbytes for holder in run.before.holders}
    for holder in run.after.holders:
        if holder.nbytes >= max(run.min_nbytes, 1) and holder.nbytes > before.get(holder.path, 0):
            yield _finding(run, holder)


def _finding(run: Run, holder: HolderFact) -> Finding:
    what = _what(holder)
    dropped = _dropped_names(run, holder)
    lost = f" since `{dropped[0]}` is gone" if dropped else ""
    return Finding(
        message=f"`{holder.path}` keeps {what}, {holder.nbytes / 2**20:.1f} MB, that no variable holds{lost}.",
        subject=holder.path,
        fix=f"%xdel _{holder.key}  # next time end the line with ; so that nothing is shown and kept",
        line=_line(run, holder, dropped),
        severity="" if holder.nbytes >= _LARGE_NBYTES else "hint",
        evidence=(
            Evidence("held by", f"{holder.path}, and _ until three more cells have shown something"),
            Evidence("held alone", holder.nbytes, "bytes"),
            *((Evidence("of this by its graph", holder.graph_nbytes, "bytes"),) if holder.graph_nbytes else ()),
            *((Evidence("device", holder.device),) if holder.device else ()),
        ),
    )


def _what(holder: HolderFact) -> str:
    if holder.shape is None:
        return f"a {holder.kind}"
    return f"a tensor of shape {holder.shape}"


def _dropped_names(run: Run, holder: HolderFact) -> list[str]:
    """Variables of that shape which the cell has deleted or given another value."""
    after = {(tensor.path, tensor.key) for tensor in run.after.tensors}
    gone = [t for t in run.before.tensors if (t.path, t.key) not in after]
    return [t.path for t in gone if t.shape == holder.shape and t.dtype == holder.dtype]


def _line(run: Run, holder: HolderFact, dropped: list[str]) -> int | None:
    """The line that shows the value, or the one that lets the variable go."""
    try:
        body = ast.parse(run.cell.code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not body:
        return None
    if holder.key == run.cell.number:
        return body[-1].lineno + run.cell.line_offset
    lines = [node.lineno for node in body if _lets_go(node, dropped)]
    return max(lines) + run.cell.line_offset if lines else None


def _lets_go(node: ast.stmt, names: list[str]) -> bool:
    targets = node.targets if isinstance(node, ast.Delete | ast.Assign) else []
    found = {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    return bool(found & set(names)) if names else isinstance(node, ast.Delete)
