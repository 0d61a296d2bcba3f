"""Whether a value goes into layers of a model whose output is the model's result, and nowhere else."""

from __future__ import annotations

import ast

from torch_inspector.facts import syntax

_SHAPES = ["view", "reshape", "flatten", "squeeze", "unsqueeze", "clone", "contiguous", "permute", "transpose", "float"]
_KEPT = frozenset([*_SHAPES, "requires_grad_", "relu", "gelu", "tanh", "sigmoid", "leaky_relu", "dropout"])
_STEPS = 30


def stands_in_method(source: str, line: int | None) -> bool:
    """True if a line stands in a method of a class, `forward` or another."""
    tree = syntax.parse(source)
    classes = [one for one in syntax.walk(tree) if isinstance(one, ast.ClassDef)] if tree is not None else []
    methods = [one for each in classes for one in each.body if isinstance(one, ast.FunctionDef)]
    return any(one.lineno <= (line or 0) <= (one.end_lineno or 0) for one in methods)


def feeds_result(source: str, line: int | None, text: str) -> bool:
    """True if an expression in a method is only given to layers, `self.head(…)`, whose output the method returns.

    Not in a loop, where it may be a state; and not where it is subtracted, multiplied or compared.
    """
    tree = syntax.parse(source)
    scope = syntax.scope_at(tree, line or 0) if tree is not None else None
    if not isinstance(scope, ast.FunctionDef):
        return False
    nodes = list(syntax.own_expressions(scope))
    parents = {id(child): node for node in (scope, *nodes) for child in syntax.children(node)}
    spots = [one for one in nodes if getattr(one, "lineno", 0) == line and isinstance(one, ast.expr)]
    waiting = [(one, False) for one in spots if ast.unparse(one) == text][:1]
    seen = len(waiting)
    for node, layered in waiting:  # grows while it is read
        end, layered = _end(node, parents, layered)  # noqa: PLW2901
        if isinstance(end, ast.Assign) and len(waiting) < _STEPS:
            reads = _reads(scope.body, end) if parents.get(id(end)) is scope else []
            if not reads:
                return False
            waiting += [(one, layered) for one in reads]
        elif not isinstance(end, ast.Return) or not layered or parents.get(id(end)) is not scope:
            return False
    return bool(seen)


def _reads(body: list[ast.stmt], made: ast.Assign) -> list[ast.Name]:
    """Where a value is read that an assignment gave a name, before it gets another; empty if nobody knows."""
    name, found = getattr(made.targets[0], "id", ""), list[ast.Name]()
    for statement in body[body.index(made) + 1 :]:
        uses = [one for one in syntax.walk(statement) if isinstance(one, ast.Name) and one.id == name]
        found += [one for one in uses if isinstance(one.ctx, ast.Load)]
        if any(not isinstance(one.ctx, ast.Load) for one in uses):
            return found if isinstance(statement, ast.Assign) else []
    return found


def _end(node: ast.AST, parents: dict[int, ast.AST], layered: bool) -> tuple[ast.AST | None, bool]:
    """The statement that a value comes to by layers and what keeps it, and whether it went into a layer."""
    for _ in range(_STEPS):
        parent = parents.get(id(node))
        if isinstance(parent, (ast.Assign, ast.Return)):
            plain = isinstance(parent, ast.Return) or len(parent.targets) == 1
            return (parent if plain else None), layered
        if isinstance(parent, ast.Attribute) and parent.attr in _KEPT:
            node, parent = parent, parents.get(id(parent))
        if not isinstance(parent, ast.Call):
            return None, False
        is_layer = isinstance(parent.func, ast.Attribute) and ast.unparse(parent.func.value) == "self"
        name = ast.unparse(parent.func).rpartition(".")[2]
        if node is not parent.func and not is_layer and not (name in _KEPT and parent.args[:1] == [node]):
            return None, False
        node, layered = parent, layered or is_layer
    return None, False
