"""A tensor echoed by a cell stays in the output cache."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from torch_inspector.facts import HolderFact, Run, syntax
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# Below this it is not worth more than a hint, whatever the user's own threshold says.
_LARGE_NBYTES = 1 << 20
# What was told is told again only where it has become more: the input of a graph comes to it when that is deleted.
_MORE = 1.1
# Methods that take something out of a container.
_REMOVERS = frozenset(("clear", "pop", "popitem", "popleft", "remove", "update"))


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds entries of `Out` that came to be the only holder of memory in this cell."""
    before, least = {holder.path: holder.nbytes for holder in run.before.holders}, max(run.min_nbytes, 1)
    for holder in run.after.holders:
        old = before.get(holder.path, 0)
        if holder.nbytes >= least and holder.nbytes > (old * _MORE if old >= least else old):
            yield _finding(run, holder)


def _finding(run: Run, holder: HolderFact) -> Finding:
    names, tree = _roots(holder.names), syntax.parse(run.cell.code)
    node = None if tree is None or holder.key == run.cell.number else _letting_go(tree, names)
    line = node.lineno if node is not None else _last_line(tree) if holder.key == run.cell.number else None
    return Finding(
        message=f"`{holder.path}` keeps {_what(holder)} that no variable holds{_since(names, node)}.",
        subject=holder.path,
        held=holder.path,
        fix=f"%xdel _{holder.key}\n# Next time end the line with ; so that nothing is shown and kept.",
        line=None if line is None else line + run.cell.line_offset,
        severity="" if holder.nbytes >= _LARGE_NBYTES else "hint",
        evidence=(
            Evidence("held by", f"{holder.path}, and _ until three more cells have shown something"),
            Evidence("held alone", holder.nbytes, "bytes"),
            *((Evidence("of this by its graph", holder.graph_nbytes, "bytes"),) if holder.graph_nbytes else ()),
            *((Evidence("device", holder.device),) if holder.device else ()),
        ),
    )


def _what(holder: HolderFact) -> str:
    size = size_text(holder.nbytes)
    if holder.shape is None:
        return f"{_article(holder.kind)} {holder.kind}, {size},"
    own_nbytes = holder.nbytes - holder.graph_nbytes
    if 0 < holder.element_nbytes < own_nbytes:
        # A view, or what is left of a larger result: losses on the CPU are scalars of the storage of all terms.
        return f"a tensor of shape {holder.shape} with a storage of {size_text(own_nbytes)}"
    return f"a tensor of shape {holder.shape}, {size},"


def _article(kind: str) -> str:
    spelled = kind[:2].isupper() and kind[0] in "FHLMNRSX"
    return "an" if kind[:1] in tuple("AEIOUaeio") or spelled else "a"


def _roots(paths: Iterable[str]) -> list[str]:
    """The variables at the start of some paths."""
    return list(dict.fromkeys(re.split(r"[.\[]", path, maxsplit=1)[0] for path in paths))


def _since(names: list[str], node: ast.expr | None) -> str:
    if not names:
        return ""
    shown = " and ".join(f"`{name}`" for name in names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")  # noqa: PLR2004
    one = len(names) == 1
    if node is not None and isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Del):
            return f" since {shown} {'is' if one else 'are'} gone"
        return f" since {shown} {'has another value' if one else 'have other values'}"
    return f" since {shown} let{'s' if one else ''} go of it"


def _last_line(tree: ast.Module | None) -> int | None:
    """The line that shows the value."""
    return tree.body[-1].lineno if tree is not None and tree.body else None


def _letting_go(tree: ast.Module, names: list[str]) -> ast.expr | None:
    """The last place where one of the variables, or a part of it, is deleted or given another value."""
    expressions = (node for node in syntax.walk(tree) if isinstance(node, ast.expr))
    found = [node for node in expressions if _lets_go(node) and _root(node) in names]
    return max(found, key=lambda node: node.lineno, default=None)


def _lets_go(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in _REMOVERS
    return isinstance(getattr(node, "ctx", None), (ast.Del, ast.Store))


def _root(node: ast.expr) -> str:
    here: ast.expr = node
    while isinstance(here, (ast.Attribute, ast.Subscript, ast.Call)):
        here = here.func if isinstance(here, ast.Call) else here.value
    return here.id if isinstance(here, ast.Name) else ""
