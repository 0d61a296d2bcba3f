"""Lines of a loss that is wrapped as a leaf, without the wrapper and without what loses the history inside of it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.graphs import CutFact
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

_VALUES = re.compile(r"(?P<whole>.+?)(?P<cut>\.detach\(\)|\.data)")
# Lines of a block that are written out.
_SHORT = 3
_STATEMENTS = (ast.Assign, ast.Return, ast.Expr)


def unwrapped(run: Run, cut: CutFact, cuts: tuple[CutFact, ...]) -> str:
    """`loss = F.cross_entropy(out, y)` for a `Variable(….data, requires_grad=True)`; empty where one of them is all."""
    inner = {one.text: one for one in (cut, *cuts) if one.kind in ("detach", "data") and _is_beside(one, cut)}
    lost = {one.place.line or 0 for one in (cut, *inner.values())}
    lines = sorted(lost | _wrapping(run, cut, lost))
    changed = [_Changed(inner).of(run, cut, line) for line in lines]
    if not inner or not any(by.wraps for by in changed) or not all(by.text for by in changed):
        return ""
    removed = dict.fromkeys(part for by in changed for part in by.removed)
    return "\n".join(by.text for by in changed) + f"  # without {' and '.join(removed)}"


def out_of_block(run: Run, block: Place, cut: Place) -> str:
    """The lines of a short `with torch.no_grad():` without it; empty where there is more to it, or the cut inside."""
    tree = syntax.parse(run.source_of(block.cell)) if block.cell == cut.cell else None
    blocks = (one for one in syntax.walk(tree) if isinstance(one, ast.With)) if tree is not None else ()
    node = next((one for one in blocks if one.lineno == block.line and len(one.items) == 1), None)
    if node is None or len(node.body) > _SHORT or not all(isinstance(one, _STATEMENTS) for one in node.body):
        return ""
    return "" if syntax.spans(node, cut.line or 0) else "\n".join(map(ast.unparse, node.body))


def _wrapping(run: Run, cut: CutFact, lines: set[int]) -> set[int]:
    """The lines of the same function that wrap what such lines give a name."""
    tree = syntax.parse(run.source_of(cut.place.cell))
    scope = syntax.scope_at(tree, cut.place.line or 0) if tree is not None else None
    own = list(syntax.own_statements(scope)) if scope is not None else []
    targets = [to for one in own if isinstance(one, ast.Assign) and one.lineno in lines for to in one.targets]
    names = {one.id for one in targets if isinstance(one, ast.Name)}
    later = [one for one in own if isinstance(one, _STATEMENTS) and one.lineno > min(lines)]
    return {one.lineno for one in later for part in syntax.walk(one) if _is_wrapper(part) and names & _names(part)}


def _is_wrapper(node: ast.AST) -> bool:
    """True for `Variable(x, requires_grad=True)`."""
    if not isinstance(node, ast.Call) or not node.args:
        return False
    name = getattr(node.func, "attr", "") or getattr(node.func, "id", "")
    return name == "Variable" and any(one.arg == "requires_grad" for one in node.keywords)


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in syntax.walk(node) if isinstance(one, ast.Name)}


def _is_beside(one: CutFact, cut: CutFact) -> bool:
    """True for what the same function loses of the same models for the same loss: not for the target of a teacher."""
    places = [each.place.scope for each in (one, cut)]
    same = places[0] == places[1] and one.sources == cut.sources and one.backwards == cut.backwards
    return one is cut or (same and not one.optional)


class _Changed(ast.NodeTransformer):
    """A statement without such parts."""

    def __init__(self, cuts: dict[str, CutFact]) -> None:
        self._cuts = cuts
        self.removed: list[str] = []
        self.text = ""
        self.wraps = False

    def of(self, run: Run, cut: CutFact, line: int) -> _Changed:
        """Changes the statement of a line; the text stays empty where there is none, or where nothing is left to do."""
        tree = syntax.parse(run.source_of(cut.place.cell))
        nodes = [one for one in syntax.walk(tree) if isinstance(one, _STATEMENTS)] if tree is not None else []
        node = next((one for one in nodes if one.lineno <= line <= (one.end_lineno or one.lineno)), None)
        if node is not None:
            new = self.visit(ast.parse(ast.unparse(node))).body[0]
            target = ast.unparse(new.targets[0]) if isinstance(new, ast.Assign) else ""
            idle = bool(target) and target == ast.unparse(new.value)
            text = f"# take this line out: {ast.unparse(node)}" if idle else ast.unparse(new)
            self.text = text if self.removed else ""
        return self

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`Variable(x, requires_grad=True)` gives way to `x`, and `x.detach()` too."""
        if _is_wrapper(node):
            self.removed.append("Variable()")
            self.wraps = True
            return self.visit(node.args[0])  # type: ignore[no-any-return]
        return self._without(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """`x.data` gives way to `x`."""
        return self._without(node)

    def _without(self, node: ast.expr) -> ast.AST:
        found = _VALUES.fullmatch(ast.unparse(node)) if ast.unparse(node) in self._cuts else None
        inner = getattr(node.func, "value", None) if isinstance(node, ast.Call) else getattr(node, "value", None)
        if found is None or inner is None:
            return self.generic_visit(node)
        self.removed.append(found["cut"])
        return self.visit(inner)  # type: ignore[no-any-return]
