"""Models that one line calls in turn: what they are called, each and together."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.forwards import ForwardFact
    from torch_inspector.facts.run import Run

_ELEMENT = re.compile(r"(.+)\[([^\[\]]+)\]")
_SHOWN = 3
_UNTYPED = "…"
_LOOPS = (ast.For, ast.comprehension)


class Asked(NamedTuple):
    """One model or several."""

    names: tuple[str, ...]
    """Of each one; those of one dictionary whose keys nobody can type are the same."""
    whole: str
    """The list or dictionary that all of several are in; empty if there is none."""
    left: frozenset[str] = frozenset()
    """Names among them that a loop has left on one of them, and that say nothing of it."""
    loop: str = ""
    """What holds them all: the list or tuple that the line goes through, if it is written out there (`[a, *b]`), or
    `nets.values()` where a loop over all of it has left a name on one of them."""

    @property
    def several(self) -> bool:
        """True if there are more than one."""
        return len(self.names) > 1

    def listed(self) -> str:
        """The first of them in words: `nets[0]`, `nets[1]` and 3 more of `nets`."""
        own = tuple(dict.fromkeys(name for name in self.names if name not in self.left)) or self.names
        shown = [f"`{name}`" for name in own[: _SHOWN if len(self.names) <= _SHOWN else _SHOWN - 1]]
        left = len(self.names) - len(shown)
        last = f"{left} more{f' of `{self.whole}`' if self.whole else ''}" if left else shown.pop()
        return f"{', '.join(shown)} and {last}" if shown else last

    def switched(self, mode: str) -> str:
        """`net.eval()` for each of a few, or that in a loop over these: others of their list may be meant to differ."""
        untyped = any(_UNTYPED in name for name in self.names)
        if self.loop and (untyped or self.left):
            return _in_loop(self.loop, mode)
        if len(self.names) <= _SHOWN and not untyped:
            return "\n".join(f"{name}.{mode}()" for name in self.names)
        if untyped and self.whole:
            return _in_loop(f"{self.whole}.values()", mode)
        return _in_loop(f"({', '.join(dict.fromkeys(map(_spread, self.names)))})", mode)


def _in_loop(source: str, mode: str) -> str:
    return f"for one_model in {source}:\n    one_model.{mode}()"


def _spread(name: str) -> str:
    """`*nets.values()` for an element of `nets` whose key nobody can type."""
    part = _ELEMENT.fullmatch(name)
    return f"*{part[1]}.values()" if part is not None and _UNTYPED in part[2] else name


def asked_together(run: Run, calls: list[ForwardFact]) -> Asked:
    """The models of some calls of one line."""
    names = tuple({call.module: run.path_of(call) for call in calls}.values())
    if len(set(names)) == 1 and _UNTYPED not in names[0]:
        names = names[:1]
    loop = _written_loop(run, calls[0]) if len({call.name for call in calls}) == 1 else None
    # Where the line says one name for all, the last may still have that of the loop which trained them.
    left = frozenset[str]() if len({call.name for call in calls}) > 1 or len(names) == 1 else _left(names, calls, loop)
    parts = [_ELEMENT.fullmatch(name) for name in names if name not in left]
    owners = {part[1] if part is not None else "" for part in parts}
    whole = owners.pop() if len(owners) == 1 and len(names) > 1 else ""
    return Asked(names, whole, left, ast.unparse(loop) if loop is not None else _source(run, whole, left, names))


def _source(run: Run, whole: str, left: frozenset[str], names: tuple[str, ...]) -> str:
    """What gives out all models of a container, where loops over it have left names on those without another one."""
    known = {part[0] for one in run.after.modules if (part := _ELEMENT.fullmatch(one.path)) and part[1] == whole}
    sources = [_given_out(run, whole, name) for name in left]
    if not whole or not left or "" in sources or len(known) + len(left) != len(names):
        return ""
    return next((one for one in sources if one != whole), whole)


def _given_out(run: Run, whole: str, name: str) -> str:
    """`nets.values()` or `nets`, as the text of a loop says which gave a name to its elements; empty if none did."""
    trees = (syntax.parse(past.cell.code) for past in (run, *reversed(run.earlier)))
    loops = (one for tree in trees if tree is not None for one in syntax.walk(tree) if isinstance(one, ast.For))
    for one in loops:
        ways = {ast.unparse(part) for part in syntax.walk(one.iter) if isinstance(part, ast.expr)}
        if name in syntax.names_in(one.target) and whole in ways:
            keyed = ways & {f"{whole}.values()", f"{whole}.items()"}
            return f"{whole}.values()" if keyed else whole
    return ""


def _left(names: tuple[str, ...], calls: list[ForwardFact], loop: ast.expr | None) -> frozenset[str]:
    """Names that are no elements, and that the line does not go through."""
    said = {one.id for one in syntax.walk(loop) if isinstance(one, ast.Name)} if loop is not None else set[str]()
    return frozenset(name for name in names if name.isidentifier() and name not in said - {calls[0].name})


def _written_loop(run: Run, call: ForwardFact) -> ast.expr | None:
    """The list or tuple of models that the loop around a call goes through, if it is written out there."""
    tree, line = syntax.parse(run.source_of(call.place.cell)), call.place.line or 0
    for one in syntax.walk(tree) if tree is not None else ():
        if isinstance(one, _LOOPS) and isinstance(one.target, ast.Name) and one.target.id == call.name:
            last = one.end_lineno if isinstance(one, ast.For) else one.iter.end_lineno
            if one.iter.lineno <= line <= (last or line) and _is_written(one.iter):
                return one.iter
    return None


def _is_written(node: ast.expr) -> bool:
    """True for a list or tuple of names, of fields and of all that is in others: `[a, *b, *c.values()]`."""
    elements = node.elts if isinstance(node, (ast.List, ast.Tuple)) else []
    calls = [one for one in syntax.walk(node) if isinstance(one, ast.Call)]
    return bool(elements) and all(isinstance(one.func, ast.Attribute) and one.func.attr == "values" for one in calls)
