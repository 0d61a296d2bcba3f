"""A value that a fix puts in the place of another, as a statement that can be pasted."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import each_turn, syntax

if TYPE_CHECKING:
    from torch_inspector.facts.errors import ErrorFact
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

# Where the whole statement is what is wrong.
OUT = "# take this line out: "
_SIMPLE = (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)
# A longer line is no help as a correction.
_LONGEST = 110
_CLOSED = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)


def assigned(name: str, made: str, remark: str = "") -> str:
    """`y = y.long()`; of what is no variable or entry of a dictionary: `y[0].long()  # in place of y[0]`.

    Args:
        name: What the user types to get the value.
        made: The new value; `{}` stands for the old one.
        remark: A comment behind it.
    """
    tree = _expression(name)
    new = made.format(name if isinstance(tree, _CLOSED) else f"({name})")
    if isinstance(tree, ast.Name) or _is_entry(tree):
        return f"{name} = {new}{f'  # {remark}' if remark else ''}"
    return f"{new}  # in place of {name}{f'; {remark}' if remark else ''}"


def assigned_at(run: Run, place: Place, name: str, made: str, remark: str = "") -> str:
    """As `assigned`, for a line that may run again: then the new value goes where the line reads the old one.

    A statement that gives a variable another shape, or divides it, must not run at each turn of a loop over the same
    value, and in a function it needs a name of the function.
    """
    if _may_be_assigned(run, place, name):
        return assigned(name, made, remark)
    new = made.format(name)
    line = in_line(run, place, name, new)
    said = f": {remark}" if remark else ""
    return f"{line}{f'  # {remark}' if remark else ''}" if line else f"{new}  # in place of {name}{said}"


def in_scope(run: Run, place: Place, fix: str, *, once: bool = False) -> str:
    """A fix that assigns a variable, which a function must not do to one from outside: then in the line itself.

    Args:
        run: The cell.
        place: The line.
        fix: Any one; what is no assignment to a variable stays as it is.
        once: True if the value must not be changed twice, as by a loop.
    """
    tree, given = syntax.parse(run.source_of(place.cell)), syntax.parse(fix)
    node = given.body[0] if given is not None and len(given.body) == 1 else None
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    if tree is None or place.line is None or not isinstance(node, ast.Assign) or not isinstance(target, ast.Name):
        return fix
    fits = each_turn.is_given_each_time if once else each_turn.is_of_scope
    reads = target.id in syntax.names_in(node.value)
    line = in_line(run, place, target.id, ast.unparse(node.value)) if reads else ""
    if not line or fits(tree, place.line, target.id):
        return fix
    remark = fix.partition("  # ")[2]
    return f"{line}{f'  # {remark}' if remark else ''}"


def _may_be_assigned(run: Run, place: Place, name: str) -> bool:
    """True if a statement before a line may give a name, or an entry of a dictionary, another value for good.

    True as well for what is neither, to which nothing is assigned.
    """
    tree, line = syntax.parse(run.source_of(place.cell)), place.line
    if tree is None or line is None:
        return True
    if not name.isidentifier():
        # What is written into a batch is still there when the batch comes again.
        return not _is_entry(_expression(name)) or each_turn.is_at_top(tree, line)
    return each_turn.is_given_each_time(tree, line, name)


def in_line(run: Run, place: Place, text: str, new: str) -> str:
    """The statement of a line with another expression for one; empty if it is long, or does not read that just once."""
    tree = syntax.parse(run.source_of(place.cell))
    nodes = [one for one in syntax.walk(tree) if isinstance(one, _SIMPLE)] if tree is not None else []
    for node in nodes:
        if place.line is None or not node.lineno <= place.line <= (node.end_lineno or node.lineno):
            continue
        own, by = ast.parse(ast.unparse(node)), _expression(new)
        found = [one for one in ast.walk(own) if isinstance(one, ast.expr) and _is_read(one, text)]
        if len(found) == 1 and by is not None:
            line = ast.unparse(_Exchange(found[0], by).visit(own))
            return line if len(line) <= _LONGEST else ""
    return ""


def _is_read(node: ast.expr, text: str) -> bool:
    return not isinstance(getattr(node, "ctx", None), ast.Store) and ast.unparse(node) == text


def instead(run: Run, place: Place, text: str, new: str, remark: str = "") -> str:
    """The assignment of a line whose whole value is an expression, with a new value; else where that one goes."""
    tree = syntax.parse(run.source_of(place.cell))
    stored = (node for node in syntax.walk(tree) if isinstance(node, ast.Assign)) if tree is not None else ()
    for node in stored:
        own = node.lineno == place.line and len(node.targets) == 1
        if own and isinstance(node.targets[0], (ast.Name, ast.Attribute)) and ast.unparse(node.value) == text:
            made = _unless_idle(f"{ast.unparse(node.targets[0])} = {new}", ast.unparse(node))
            return f"{made}{f'  # {remark}' if remark else ''}"
    return f"{new}  # in place of {text}{f': {remark}' if remark else ''}"


def in_statement(run: Run, place: Place, text: str, new: str) -> str:
    """The statement of a line with another expression in the place of one that it has once; else the new one alone."""
    tree, old = syntax.parse(run.source_of(place.cell)), _expression(text)
    nodes = [one for one in syntax.walk(tree) if isinstance(one, _SIMPLE)] if tree is not None else []
    for node in nodes:
        whole, part = ast.unparse(node), ast.unparse(old) if old is not None else text
        within = place.line is not None and node.lineno <= place.line <= (node.end_lineno or node.lineno)
        if within and whole.count(part) == 1 and len(whole) <= _LONGEST:
            return _unless_idle(whole.replace(part, new), whole)
    return new


def _unless_idle(new: str, old: str) -> str:
    """A statement; a remark in its place where it would do nothing, as `x = x` for `x = torch.softmax(x, 1)`."""
    tree = syntax.parse(new)
    node = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    idle = isinstance(node, ast.Assign) and len(node.targets) == 1
    same = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == ast.unparse(node.value)
    return f"{OUT}{old}" if idle and same else new


def restated(error: ErrorFact, expression: str) -> str:
    """The statement that failed, with another expression in the place of the guilty one; that alone if it is long."""
    once = bool(error.expression) and error.statement.count(error.expression) == 1
    return error.statement.replace(error.expression, expression) if once else expression


def with_operand(error: ErrorFact, path: str, new: str, *, last: bool = False) -> str:
    """The statement that failed, with another expression for one of its operands; empty if it does not name that."""
    tree, by = _expression(error.expression), _expression(new)
    found = [one for one in syntax.walk(tree) if ast.unparse(one) == path] if tree is not None else []
    if tree is None or by is None or not found:
        return ""
    return restated(error, ast.unparse(_Exchange(found[-1 if last else 0], by).visit(tree)))


class _Exchange(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        """The new node for the old one."""
        return self._new if node is self._old else super().visit(node)


def _expression(name: str) -> ast.expr | None:
    try:
        return ast.parse(name, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_entry(tree: ast.expr | None) -> bool:
    """True for `batch['y']`: an index into a tensor would write into it, and a tuple takes none."""
    key = tree.slice if isinstance(tree, ast.Subscript) else None
    return isinstance(key, ast.Constant) and type(key.value) is str
