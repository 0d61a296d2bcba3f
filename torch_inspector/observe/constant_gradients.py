"""Gradients of inputs that a loss takes as plain numbers: `torch.autograd.grad` without `create_graph`.

Goes backwards from the loss along sums and what is done to them, not through models, and not where the gradient is only
a factor or the step from one input to the next: there it is meant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torch_inspector.facts import CutFact, Place, syntax
from torch_inspector.observe.cuts import given, returned, root_at, sources
from torch_inspector.observe.source import dotted
from torch_inspector.observe.texts import Spot, Texts

_SPOTS = 200
_GRADS = frozenset(["torch.autograd.grad", "autograd.grad", "grad"])
# Methods and functions that leave a loss of a tensor what it was of.
_METHODS = frozenset(
    (
        *("norm", "mean", "sum", "pow", "square", "sqrt", "abs", "clamp", "clamp_min", "relu", "flatten", "view"),
        *("reshape", "squeeze", "unsqueeze", "transpose", "contiguous", "float", "double", "to", "add", "sub", "neg"),
    )
)
_LOSSES = frozenset(["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
_JOINS = frozenset(["stack", "cat", "concat", "vector_norm", "sum"])


def constant_gradients(place: Place, texts: Texts, plain: frozenset[Place]) -> Iterator[CutFact]:
    """Calls of `grad` whose numbers are added up in a loss.

    Args:
        place: The line of a call of `backward()` or `grad()`.
        texts: The code of the cells.
        plain: Lines that have called `grad` for numbers without history.
    """
    for file in texts.files:
        if file.cell != place.cell or file.tree is None or place.line is None:
            continue
        root = root_at(file.tree, place.line - file.offset) or _asked_at(file.tree, place.line - file.offset)
        if root is not None:
            scope = syntax.scope_at(file.tree, place.line - file.offset)
            yield from _behind(Spot(root, scope, file, 0), texts, {(one.cell, one.line) for one in plain})
        return


def _asked_at(tree: ast.Module, line: int) -> ast.expr | None:
    """What `grad()` is called on in a line."""
    calls = [n for n in syntax.walk(tree) if isinstance(n, ast.Call) and dotted(n.func) in _GRADS]
    call = next((one for one in calls if one.lineno <= line <= (one.end_lineno or one.lineno)), None)
    given = [one.value for one in call.keywords if one.arg == "outputs"] if call is not None else []
    return next(iter((*given, *(call.args if call is not None else ()))), None)


def _behind(first: Spot, texts: Texts, plain: set[tuple[int | None, int | None]]) -> Iterator[CutFact]:
    waiting, seen, count = [first], set[tuple[int, int | None]](), 0
    while waiting and count < _SPOTS:
        spot, count = waiting.pop(0), count + 1
        if (id(spot.node), spot.at) in seen:
            continue
        seen.add((id(spot.node), spot.at))
        call = _plain_grad(spot.node)
        if call is None:
            waiting.extend(_parts(spot, texts))
            continue
        lines = (one + spot.file.offset for one in range(call.lineno, (call.end_lineno or call.lineno) + 1))
        line = next((one for one in lines if (spot.file.cell, one) in plain), None)
        if line is not None:
            yield CutFact(Place(spot.file.cell, line), _with_graph(call), "grad", ())


def _plain_grad(node: ast.AST) -> ast.Call | None:
    """A call of `torch.autograd.grad` whose result has no history, as far as the text says."""
    if not isinstance(node, ast.Call) or dotted(node.func) not in _GRADS:
        return None
    kept = [one.value for one in node.keywords if one.arg in ("create_graph", None)]
    plain = len(node.args) < 5 and all(isinstance(one, ast.Constant) and not one.value for one in kept)  # noqa: PLR2004
    return node if plain else None


def _parts(spot: Spot, texts: Texts) -> Iterator[Spot]:
    """What the value of an expression is a sum or a measure of."""
    node = spot.node
    if isinstance(node, ast.Name):
        yield from given(node.id, spot, texts)
    elif isinstance(node, ast.BinOp):
        yield from (spot._replace(node=one) for one in _terms(node, spot, texts))
    elif isinstance(node, ast.Call):
        yield from _parts_of_call(node, spot, texts)
    else:
        yield from (spot._replace(node=one) for one in _inner(node))


def _terms(node: ast.BinOp, spot: Spot, texts: Texts) -> Iterator[ast.expr]:
    """Both sides of a sum; of a product only one that is weighed by a number, not by what a model gave."""
    if isinstance(node.op, (ast.Add, ast.Sub)):
        yield from (node.left, node.right)
    elif isinstance(node.op, ast.Pow):
        yield node.left
    elif isinstance(node.op, (ast.Mult, ast.Div)):
        sides = (node.left, node.right)
        for one, other in (sides, sides[::-1]):
            if not any(sources(spot._replace(node=other), texts)):
                yield one


def _inner(node: ast.expr) -> Iterable[ast.expr]:
    """The operand of `-x`, `x[0]`, `sum(x for …)`, the elements of a list."""
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.Subscript):
        return [node.value]
    if isinstance(node, (ast.List, ast.Tuple)):
        return node.elts
    if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
        return [node.elt]
    return ()


def _parts_of_call(node: ast.Call, spot: Spot, texts: Texts) -> Iterator[Spot]:
    name, last = dotted(node.func), dotted(node.func).rpartition(".")[2]
    known = returned(node, spot, texts)
    if known:
        yield from known
    elif (
        name in texts.losses
        or last in _LOSSES | (_JOINS - _METHODS)
        or name == "sum"
        or (name.startswith("torch.") and last in _METHODS)
    ):
        yield from (spot._replace(node=one) for one in node.args[: 1 if last in _METHODS else 2])
    elif isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        yield spot._replace(node=node.func.value)
        if node.func.attr in ("add", "sub"):
            yield from (spot._replace(node=one) for one in node.args[:1])


def _with_graph(call: ast.Call) -> str:
    """The call as it has to be: `torch.autograd.grad(y, x, create_graph=True)`."""
    others = [one for one in call.keywords if one.arg not in ("create_graph", "retain_graph")]
    wanted = ast.keyword("create_graph", ast.Constant(True))
    return ast.unparse(ast.Call(call.func, call.args, [*others, wanted]))
