"""A kept exception keeps the tensors of the functions that failed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import LocalFact, Run, TracebackFact, syntax
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# The next failing cell lets go of the last exception: below this it is worth a line.
_LARGE_NBYTES = 64 << 20
# Locals that the message names, and that the evidence lists.
_NAMED, _LISTED = 2, 8
# Runs before this one in which a debugger counts.
_RECENT = 3
_LAST = "sys.last_value"
# Who writes this looks into the frames on purpose.
_DEBUGS = re.compile(r"%debug|%pdb|\bbreakpoint\(|set_trace\(|post_mortem|\bpm\(\)|sys\.last_|tb_frame|%tb\b")
_OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory", re.IGNORECASE)
_ADDERS = frozenset(("add", "append", "appendleft", "extend", "insert", "setdefault", "update"))


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds exceptions that came to be kept in this cell, with memory that only their frames hold."""
    if not run.after.tracebacks or any(_DEBUGS.search(one.cell.source) for one in (*run.earlier[-_RECENT:], run)):
        return
    before = {(fact.key, fact.cell) for fact in run.before.tracebacks}
    groups: dict[str, list[TracebackFact]] = {}
    for fact in run.after.tracebacks:
        if (fact.key, fact.cell) not in before:
            groups.setdefault(_root(fact.path), []).append(fact)
    for root, facts in groups.items():
        large = sum(fact.nbytes for fact in facts) >= max(run.min_nbytes, 1)
        if large and facts[0].locals and (root != "sys" or _is_told_here(run)):
            yield _finding(run, root, facts)


def _is_told_here(run: Run) -> bool:
    """True if the cell has failed; for want of memory is another matter, see `out_of_memory`."""
    error = run.error
    return error is not None and error.shortage is None and not _OUT_OF_MEMORY.search(error.message)


def _root(path: str) -> str:
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def _finding(run: Run, root: str, facts: list[TracebackFact]) -> Finding:
    nbytes, subject = sum(fact.nbytes for fact in facts), facts[0].path if len(facts) == 1 else root
    kept = sorted((local for fact in facts for local in fact.locals), key=lambda local: -local.nbytes)
    failed_at = run.error.place if root == "sys" and run.error is not None else None
    return Finding(
        message=f"{_who(subject, facts)} {size_text(nbytes)} that no variable holds: {_locals(kept)}.",
        subject=subject,
        held="" if subject == "sys" else subject,
        fix=_fix(root, facts),
        line=failed_at.line if failed_at is not None else _storing_line(run, root),
        cell=failed_at.cell if failed_at is not None else None,
        severity="" if nbytes >= _LARGE_NBYTES else "hint",
        evidence=(
            Evidence("kept by", ", ".join((subject, *facts[0].others)) if len(facts) == 1 else subject),
            *((Evidence("exceptions", len(facts), "count"),) if len(facts) > 1 else ()),
            Evidence("held by their frames alone", nbytes, "bytes"),
            *(Evidence(_where(local), local.nbytes, "bytes") for local in kept[:_LISTED]),
            *(Evidence(f"graph behind {local.path}", local.graph_nbytes, "bytes") for local in kept if _graph(local)),
        ),
    )


def _graph(local: LocalFact) -> bool:
    return local.graph_nbytes > 0


def _who(subject: str, facts: list[TracebackFact]) -> str:
    if subject == _LAST:
        return f"the traceback of this {facts[0].kind} keeps"
    if len(facts) > 1:
        return f"the tracebacks of {len(facts)} exceptions in `{subject}` keep"
    return f"`{subject}` is {_article(facts[0].kind)} {facts[0].kind} whose traceback keeps"


def _article(kind: str) -> str:
    return "an" if kind[:1] in tuple("AEIOUaeio") else "a"


def _locals(kept: list[LocalFact]) -> str:
    named = [
        f"`{local.path}` in {local.function}, {size_text(local.nbytes)}{_behind(local)}" for local in kept[:_NAMED]
    ]
    more = len(kept) - len(named)
    return "; ".join(named) + (f"; {more} more" if more > 0 else "")


def _behind(local: LocalFact) -> str:
    """Where most of it is, if that is not the tensor itself."""
    return ", most of it in the graph behind it" if local.graph_nbytes > local.nbytes / 2 else ""


def _where(local: LocalFact) -> str:
    shape = f" {local.shape}" if local.shape is not None else ""
    line = f", line {local.place.line}" if local.place.line is not None else ""
    return f"{local.path}{shape} in {local.function}{line}"


_LINES = 3


def _fix(root: str, facts: list[TracebackFact]) -> str:
    """What lets go of the frames."""
    path = facts[0].path
    if root == "sys":
        return "%torchcheck free --yes --traceback  # leaves nothing for %debug; the next failing cell does it too"
    if any(other == _LAST for fact in facts for other in fact.others):
        return f"traceback.clear_frames({path}.__traceback__)  # import traceback; the notebook keeps it as well"
    if any("…" in fact.path for fact in facts):
        return _of_all(root, facts)
    if len(facts) > 1:
        lines = [f"{fact.path}.__traceback__ = None" for fact in facts[:_LINES]]
        more = ["# and so on"] if len(facts) > _LINES else []
        return "\n".join([*lines, *more, "# or keep str(error) instead of the error"])
    return f"del {path}" if path == root else f"{path}.__traceback__ = None  # or keep str(error) instead of the error"


def _of_all(root: str, facts: list[TracebackFact]) -> str:
    """For exceptions under keys that cannot be written: all of the dictionary in a loop, where they are its values."""
    owners = {fact.path.removesuffix("[…]") for fact in facts}
    owner = owners.pop()
    if owners or "…" in owner or owner + "[…]" != facts[0].path:
        return f"del {root}  # or keep str(error) in it instead of the error"
    return (
        f"for error in {owner}.values():\n    if isinstance(error, BaseException):\n"
        "        error.__traceback__ = None\n# or keep str(error) instead of the error"
    )


def _storing_line(run: Run, root: str) -> int | None:
    """The last line of the cell that gives the variable, or a part of it, a value; in `except` blocks first."""
    tree = syntax.parse(run.cell.code)
    if tree is None:
        return None
    handlers = [block for block in syntax.walk(tree) if isinstance(block, ast.ExceptHandler)]
    handled = [node for block in handlers for node in syntax.walk(block)]
    for nodes in (handled, list(syntax.walk(tree))):
        lines = [node.lineno for node in nodes if isinstance(node, ast.expr) and _stores(node, root)]
        if lines:
            return max(lines) + run.cell.line_offset
    return None


def _stores(node: ast.expr, root: str) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in _ADDERS and _name(node.func.value) == root
    return isinstance(getattr(node, "ctx", None), ast.Store) and _name(node) == root


def _name(node: ast.expr) -> str:
    here: ast.expr = node
    while isinstance(here, (ast.Attribute, ast.Subscript)):
        here = here.value
    return here.id if isinstance(here, ast.Name) else ""
