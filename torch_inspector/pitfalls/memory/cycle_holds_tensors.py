"""Objects with tensors that refer to each other in a circle wait for Python's garbage collector."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import CircleFact, Run, syntax
from torch_inspector.facts.spelled import with_article
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds modules and objects that were let go of in this cell, and that only references among themselves hold."""
    for circle in run.after.circles if run.error is None else ():
        if circle.nbytes >= max(run.min_nbytes, 1) and not _is_an_elder(run, circle):
            yield _finding(run, circle)


def _is_an_elder(run: Run, circle: CircleFact) -> bool:
    """True for the model before the one that a second run of the cell made: that is another finding."""
    again = any(past.cell.source == run.cell.source for past in run.earlier)
    return any(again and elder.path == circle.path for elder in run.after.elders)


def _finding(run: Run, circle: CircleFact) -> Finding:
    empties = bool(run.trace.emptied) or any(call.name.endswith("empty_cache") for call in run.trace.calls)
    line, cell = _place(run, circle)
    return Finding(
        message=f"{_what(circle)}{_ring(circle)}: {_waiting(circle)}.",
        subject=circle.path or circle.kind,
        fix=f"import gc; gc.collect()  # or break the circle: {_broken(circle)}",
        line=line,
        cell=cell,
        severity="warning" if empties else "",
        evidence=(
            Evidence("class", circle.kind),
            Evidence("objects", circle.count, "count"),
            Evidence("held by them alone", circle.nbytes, "bytes"),
        ),
    )


def _waiting(circle: CircleFact) -> str:
    """With the moment: what a next cell makes, or the look itself, may bring the collector."""
    return f"{size_text(circle.nbytes)} wait for Python's garbage collector at the end of this cell"


def _what(circle: CircleFact) -> str:
    if circle.count > 1:
        return f"{circle.count} of {circle.kind} are held by nothing but references among their own parts"
    kind = with_article(circle.kind)
    named = f"What `{circle.path}` named, {kind}," if circle.path else kind[:1].upper() + kind[1:]
    return f"{named} is held by nothing but references among its own parts"


def _ring(circle: CircleFact) -> str:
    return f" ({' and '.join(f'`{name}`' for name in circle.ring)})" if circle.ring else ""


def _broken(circle: CircleFact) -> str:
    """Which reference is to go. What a variable named is held without the circle: what leads back to it may be weak."""
    if not circle.ring:
        return "a weakref.ref() to the owner in its hooks and callbacks"
    done = "None there once it is done"
    if len(circle.ring) == 1:
        # What leads straight back may be a method of its own: a plain weak reference to one is dead at once.
        return f"a weakref.ref(), of a method a weakref.WeakMethod(), in {circle.ring[0]}, or {done}"
    if circle.path.isidentifier():
        return f"a weakref.ref() to `{circle.path}` in {circle.ring[-1]}, or {done}"
    either = " or ".join(circle.ring)
    return f"None in {either} once it is done, or a weakref.ref() in the one whose object something else holds"


def _place(run: Run, circle: CircleFact) -> tuple[int | None, int | None]:
    """Line and cell that let go of it, or that called it where it had no global name."""
    if circle.made_at is not None:
        return circle.made_at, None
    call = next((call for call in run.trace.forwards if call.module == circle.key), None)
    if not circle.path and call is not None:
        return call.place.line, call.place.cell
    line = _let_go(run.cell.code, circle.path)
    return None if line is None else line + run.cell.line_offset, None


def _let_go(code: str, path: str) -> int | None:
    """The last line that deletes the variable, sets it, or sets a part of it."""
    tree = syntax.parse(code)
    if tree is None:
        return None
    changed = (node for node in syntax.walk(tree) if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)))
    lines = [node.lineno for node in changed if isinstance(node, ast.expr) and ast.unparse(node) == path]
    return max(lines, default=None)
