"""Hooks that are still registered make a container of tensors longer with each pass."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import ForwardFact, HookFact, Run, syntax
from torch_inspector.facts.sole import called, sole
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

_REGISTERS = re.compile(r"register_\w*hook")
_SLUG = "hook-collects-tensors"
# Passes of one step, such as prediction, target and style, may be compared before what they left is cleared.
_PASSES = 4


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds containers that grew with every pass of this cell, through hooks, and that nobody is using."""
    grown = [hook for hook in run.after.hooks if run.error is None and not hook.unread and _grew(run, hook)]
    for hook in _together(grown):
        yield from _judge(run, hook, _passes(run, hook))
    unread = [hook for hook in run.after.hooks if run.error is None and hook.unread]
    yield from _left_unread(run, [one for one in unread if one.layer not in {hook.layer for hook in grown}])


def _grew(run: Run, hook: HookFact) -> bool:
    passes = _passes(run, hook)
    grew = 0 < passes * hook.hook_count <= hook.new_count
    return grew and hook.entry_count >= _PASSES * hook.hook_count and hook.nbytes >= max(run.min_nbytes, 1)


def _together(hooks: list[HookFact]) -> list[HookFact]:
    """The containers; those that only the hooks of one function on one layer lead to, from several calls, as one."""
    found: dict[tuple[object, ...], HookFact] = {}
    for number, hook in enumerate(hooks):
        same = (hook.path, hook.function, hook.layer, hook.module) if hook.alone else (number,)
        known = found.get(same)
        found[same] = hook if known is None else _sum(known, hook)
    return list(found.values())


def _sum(one: HookFact, other: HookFact) -> HookFact:
    return one._replace(
        hook_count=one.hook_count + other.hook_count,
        entry_count=one.entry_count + other.entry_count,
        nbytes=one.nbytes + other.nbytes,
        new_nbytes=one.new_nbytes + other.new_nbytes,
        new_count=one.new_count + other.new_count,
        old_kept=one.old_kept and other.old_kept,
    )


def _judge(run: Run, hook: HookFact, passes: int) -> Iterator[Finding]:
    if hook.alone:
        yield _finding(run, hook, "nothing but the hook leads there", hint=False)
    elif not hook.named or _is_used(run, hook) or _waits_for_backward(run, hook):
        return
    elif passes >= _PASSES and (run.trace.steps or run.trace.count("step")):
        yield _finding(run, hook, "the hook is still registered", hint=False)
    elif hook.old_kept and hook.new_nbytes >= run.min_nbytes and not _is_told(run, hook):
        yield _finding(run, hook, "the hook of an earlier cell is still registered", hint=True)


def _left_unread(run: Run, hooks: list[HookFact]) -> Iterator[Finding]:
    """One finding for all hooks of one function that keep what nobody can read."""
    for first in {hook.function: hook for hook in reversed(hooks)}.values():
        same = [hook for hook in hooks if hook.function == first.function]
        nbytes = sum(hook.nbytes for hook in same)
        told = any(f.slug == _SLUG and f.subject == first.layer for past in run.earlier for f in past.findings)
        if nbytes >= max(run.min_nbytes, 1) and not told:
            yield _unread(run, first, same, nbytes)


def _unread(run: Run, hook: HookFact, same: list[HookFact], nbytes: int) -> Finding:
    call = next(iter(_calls(run, hook)), None)
    others = f" and of {len(same) - 1} more" if len(same) > 1 else ""
    return Finding(
        message=(
            f"`{hook.function}`, a {hook.kind} hook of `{hook.layer}`{others}, keeps tensors of the last pass in its "
            f"`{hook.path}`, {size_text(nbytes)}: no variable leads to them."
        ),
        subject=hook.layer,
        fix=_fix(run, hook),
        line=call.place.line if call else None,
        cell=call.place.cell if call else None,
        severity="hint",
        evidence=(
            Evidence("held now", nbytes, "bytes"),
            Evidence("hook", hook.function),
            Evidence("layer", hook.layer),
        ),
    )


def _calls(run: Run, hook: HookFact) -> list[ForwardFact]:
    """Calls of the model that has the hook, or of what calls it."""
    own = [call for call in run.trace.forwards if call.module == hook.module]
    return own or list(run.trace.forwards)


def _passes(run: Run, hook: HookFact) -> int:
    """How often the hook has been called at least, if it was there during the whole cell."""
    if hook.kind == "forward":
        return sum(call.count for call in _calls(run, hook))
    return run.trace.count("backward")


def _waits_for_backward(run: Run, hook: HookFact) -> bool:
    """True if the graphs behind the tensors are held too: that is another finding."""
    return hook.has_history and any(graph.path == hook.path and not graph.spent for graph in run.after.graphs)


def _is_told(run: Run, hook: HookFact) -> bool:
    return any(f.slug == _SLUG and f.subject == hook.path for past in run.earlier for f in past.findings)


def _is_used(run: Run, hook: HookFact) -> bool:
    """True if the cell itself reads the container: more than its length or its last element."""
    name = re.split(r"[.\[]", hook.path, maxsplit=1)[0]
    tree = syntax.parse(run.cell.code)
    if tree is None:
        return False
    return any(isinstance(node, ast.Name) and node.id == name for node in _read(tree))


def _read(tree: ast.AST) -> Iterator[ast.AST]:
    """Parts of the code outside functions whose value is used."""
    stack = [tree]
    while stack:
        node = stack.pop()
        skipped = isinstance(node, syntax.INNER)
        if skipped or _is_glance(node) or isinstance(getattr(node, "ctx", None), ast.Store):
            continue
        yield node
        stack.extend(syntax.children(node))


def _is_glance(node: ast.AST) -> bool:
    """`len(acts)` and `acts[-1]`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "len"
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.UnaryOp)


def _finding(run: Run, hook: HookFact, why: str, *, hint: bool) -> Finding:
    call = next(iter(_calls(run, hook)), None)
    whose = "a lambda" if hook.function == "<lambda>" else f"`{hook.function}`"
    where = f"`{hook.path}`" if hook.named else f"its `{hook.path}`"
    return Finding(
        message=(
            f"Each pass leaves tensors in {where}: {whose}, a {hook.kind} hook of `{hook.layer}`{_more(hook)}, has put "
            f"{hook.new_count} there in this cell, {size_text(hook.nbytes)} are held now, and {why}."
        ),
        subject=hook.path if hook.named else hook.layer,
        held=hook.path if hook.named else "",
        fix=_fix(run, hook),
        line=call.place.line if call else None,
        cell=call.place.cell if call else None,
        severity="hint" if hint else "",
        evidence=(
            Evidence("put there in this cell", hook.new_count, "count"),
            Evidence("held now", hook.nbytes, "bytes"),
            Evidence("gained in this cell", hook.new_nbytes, "bytes"),
            Evidence("hook", hook.function),
            Evidence("layer", hook.layer),
        ),
    )


def _more(hook: HookFact) -> str:
    others = hook.hook_count - 1
    return f" and {others} more" if others > 0 else ""


def _fix(run: Run, hook: HookFact) -> str:
    remove = f"{hook.handle or 'handle'}.remove()"
    if hook.mapping and hook.named:
        return f"{remove}  # or keep one per layer: {hook.path}[name] = output.detach()"
    given = "" if hook.handle else _with_handle(run)
    return given or f"{remove}  # as soon as it is not needed any more"


def _with_handle(run: Run) -> str:
    """The line that registers the hook, with a name for the handle that it gives."""
    unnamed = ", where handle is what registering the hook gave back"
    written = sole(run, lambda node: _REGISTERS.fullmatch(called(node)) is not None)
    sources = {one.cell.source for one in (run, *run.earlier)}
    if written is None or sum(len(_REGISTERS.findall(source)) for source in sources) > 1:
        return f"handle.remove()  # as soon as it is not needed any more{unnamed}"
    where = written.place.said_in(run.cell.number)
    tree = syntax.parse(run.source_of(written.place.cell))
    for node in syntax.walk(tree) if tree is not None else ():
        body = node.body if isinstance(node, ast.For) else []
        if isinstance(node, ast.For) and len(body) == 1 and ast.unparse(body[0]) == written.text:
            made = f"[{written.text} for {ast.unparse(node.target)} in {ast.unparse(node.iter)}]"
            return f"handles = {made}  # {where}; when it is done: for handle in handles: handle.remove()"
    return f"handle = {written.text}  # {where}; when it is done: handle.remove()"
