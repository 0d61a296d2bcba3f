"""Objects with tensors that refer to each other in a circle wait for Python's garbage collector."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import CircleFact, ElderFact, Run, syntax
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
    """True for the models before the one that a second run of the cell, or a loop, made: that is another finding."""
    again = any(past.cell.source == run.cell.source for past in run.earlier)
    if circle.made_at is not None and any(_is_told(run, elder, circle) for elder in run.after.elders):
        return True
    return any(again and elder.path == circle.path for elder in run.after.elders)


def _is_told(run: Run, elder: ElderFact, circle: CircleFact) -> bool:
    return elder.in_loop and elder.kind == circle.kind and elder.nbytes >= max(run.min_nbytes, 1)


def _finding(run: Run, circle: CircleFact) -> Finding:
    empties = bool(run.trace.emptied) or any(call.name.endswith("empty_cache") for call in run.trace.calls)
    line, cell = _place(run, circle)
    return Finding(
        message=f"{_what(circle)}{_ring(circle)}: {_waiting(circle)}.",
        subject=circle.path or circle.kind,
        fix=f"import gc; gc.collect()  # or break the circle: {_broken(run, circle)}",
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


def _broken(run: Run, circle: CircleFact) -> str:
    """Which reference is to go. What a variable named is held without the circle: what leads back to it may be weak."""
    if not circle.ring:
        return "a weakref.ref() to the owner in its hooks and callbacks"
    last = circle.ring[-1]
    if len(circle.ring) > 1 and (not circle.path.isidentifier() or _makes(run, last, circle.kind)):
        either = " or ".join(circle.ring)
        methods = any(
            how == "method" and not _is_hooks(one) for one, how in zip(circle.ring, circle.through, strict=False)
        )
        method = ", of a method a weakref.WeakMethod()," if methods else ""
        return (
            f"None in {either} once it is done, or a weakref.ref(){method} in the one whose object something else holds"
        )
    if len(circle.ring) > 1 and circle.through[-1:] == ("many",):
        others = " or ".join(circle.ring[:-1])
        return (
            f"{last} may hold more than `{circle.path}`, so rather a weakref.ref() in {others}, if something else "
            "holds what that leads to, or None there once it is done"
        )
    return f"{_weak(circle)}, or {_done(last)}"


def _weak(circle: CircleFact) -> str:
    """What refers to the owner without holding it. A plain weak reference to a method or a lambda is dead at once."""
    last, through = circle.ring[-1], circle.through[-1] if circle.through else ""
    owner = f"`{circle.path}`" if circle.path.isidentifier() else "the owner"
    if _is_hooks(last) and through in ("method", "function"):  # torch gives the arguments at once to what is there
        return f"a function in {last} that has a weakref.ref() to {owner}"
    if through == "method":
        return f"a weakref.WeakMethod() in {last}, which gives the method when it is called"
    within = "the function in " if through == "function" else ""
    return f"a weakref.ref() to {owner} in {within}{last}"


def _is_hooks(attribute: str) -> bool:
    return attribute.endswith("_hooks")


def _done(attribute: str) -> str:
    return "remove() of its handle once it is done" if _is_hooks(attribute) else "None there once it is done"


def _makes(run: Run, attribute: str, kind: str) -> bool:
    """True for `self.agent = Agent(self)`: nothing else holds the new object at that moment."""
    texts = (run.cell.code, *(past.cell.code for past in run.earlier))
    nodes = (node for text in texts if (tree := syntax.parse(text)) is not None for node in syntax.walk(tree))
    name = attribute.rpartition(".")[2]
    given = (node for node in nodes if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None)
    values = (
        one.value for one in given if any(getattr(target, "attr", "") == name for target in syntax.targets_of(one))
    )
    calls = (part for value in values for part in syntax.walk(value) if isinstance(part, ast.Call))  # type: ignore[arg-type]
    return any(ast.unparse(call.func).rpartition(".")[2] == kind for call in calls)


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
