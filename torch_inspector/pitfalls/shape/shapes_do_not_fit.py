"""Tensors whose shapes do not go together in a calculation, a product or a join, or whose memory fits no view."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, OperandFact, Run, restated, syntax, with_operand
from torch_inspector.facts.named_axes import moved_by_names
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_SUM = re.compile(
    r"^The size of tensor a \(\d+\) must match the size of tensor b \(\d+\) at non-singleton dimension \d+"
)
_PRODUCT = re.compile(
    r"^mat1 and mat2 shapes cannot be multiplied|^Expected size for first two dimensions of batch2 tensor"
    r"|^size mismatch, got input|^inconsistent tensor size, expected tensor"
)
_JOIN = re.compile(
    r"^Sizes of tensors must match except in dimension (\d+)|^stack expects each tensor to be equal size"
)
_VIEW = re.compile(r"^view size is not compatible with input tensor's size and stride")
# What copies where `view` refuses.
_COPYING = {"view": "reshape", "view_as": "reshape_as"}
# Axes of a matrix.
_MATRIX = 2
# Axes of a batch of pictures; what layers that halve and double leave over.
_PICTURES, _NEAR = 4, 8
# Names for parts of a view, one after the other, that are followed.
_PASSES = 3
_Told = tuple[str, str] | None
_LIBRARIES = ("torch", "F", "nn.functional", "torch.nn.functional")


@pitfall(severity="hint", yields_to=("layer-input-mismatch", "integer-one-hot-target"))
def check(run: Run) -> Iterator[Finding]:
    """Finds the operands behind the error, with their names and shapes."""
    error = run.error
    if error is None or error.kind != "RuntimeError" or not error.expression:
        return
    # In the code of a class that inherits from a layer of torch it may be any calculation.
    if error.layer is not None and error.layer.family and error.layer.kind == error.layer.family:
        return
    if _VIEW.match(error.message):
        yield from _of_view(run, error)
    met = _met(error)
    if met is None:
        return
    left, right = met
    tell = _sum if _SUM.match(error.message) else _product if _PRODUCT.match(error.message) else _join
    told = tell(error, left, right)
    if told is not None:
        yield Finding(
            message=told[0],
            subject=right.path,
            fix=told[1],
            line=error.place.line,
            cell=error.place.cell,
            evidence=tuple(Evidence(one.path, f"{one.shape} {one.dtype}") for one in (left, right)),
        )


def _of_view(run: Run, error: ErrorFact) -> Iterator[Finding]:
    """A tensor whose axes were turned or cut, and that is to be viewed in another shape."""
    call = syntax.expression(error.expression)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr not in _COPYING:
        return
    owner, view = ast.unparse(call.func.value), call.func.attr
    whole = next((one for one in error.operands if one.path == owner and one.kind == "tensor"), None)
    also = f" (`{whole.known_as}` in the call)" if whole and whole.known_as and whole.known_as != owner else ""
    shape = (whole.shape if whole else None) or ()
    turned = moved_by_names(run, error.place, error.expression, owner, len(shape))
    more = f"`{_COPYING[view]}` copies them where it must" if not turned else "an axis has to be moved"
    yield Finding(
        message=(
            f"the numbers of `{owner}`{also} do not lie in memory in the order of its axes, as after a transpose, a "
            f"permute or a slice: `{view}` never moves numbers, {more}."
        ),
        subject=owner,
        fix="" if _is_written(run, error) else restated(error, turned or _copying(call, owner)),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence(owner, f"{whole.shape} {whole.dtype}"),) if whole else (),
    )


def _copying(call: ast.Call, owner: str) -> str:
    """The call with `reshape` for `view`."""
    func = ast.Attribute(syntax.expression(owner) or ast.Name(owner), _COPYING[call.func.attr])  # type: ignore[attr-defined]
    return ast.unparse(ast.Call(func, [*call.args, *(one.value for one in call.keywords)], []))


def _is_written(run: Run, error: ErrorFact) -> bool:
    """True if the code may write through the view: into a copy, that would be lost."""
    tree = syntax.parse(error.statement)
    statement = tree.body[0] if tree is not None and tree.body else None
    if statement is None or any(error.expression in text for text in _written(statement)):
        return True
    codes = [past.cell.code for past in (*run.earlier, run) if past is run or past.cell.number == error.place.cell]
    trees = [tree for code in codes if (tree := syntax.parse(code)) is not None]
    written = {text for tree in trees for text in _written(tree)}
    if not isinstance(statement, ast.Assign):
        return isinstance(statement, ast.Return) and bool(written)
    names = {ast.unparse(one) for target in statement.targets for one in _targets(target)}
    for _ in range(_PASSES):
        names |= {name for tree in trees for name in _derived(tree, names)}
    return any(text.startswith(name) for text in written for name in names)


def _written(tree: ast.AST) -> Iterator[str]:
    """Texts of what code writes into: `flat` of `flat[0] = 5` and `flat.zero_()`, also by `out=` and `nn.init`."""
    for node in syntax.walk(tree):
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            whole = isinstance(node, ast.AugAssign)
            yield from (ast.unparse(one) for one in targets if whole or isinstance(one, (ast.Subscript, ast.Attribute)))
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if name.endswith("_") and not name.endswith("__"):
                yield from map(ast.unparse, [node.func.value, *node.args])  # type: ignore[attr-defined]
            yield from (ast.unparse(one.value) for one in node.keywords if one.arg == "out")


def _targets(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]


def _derived(tree: ast.AST, names: set[str]) -> Iterator[str]:
    """Names that are given a part or a view of other ones: `row = flat[0]`, `for row in flat`."""
    for node in syntax.walk(tree):
        if isinstance(node, (ast.Assign, ast.For)):
            source = node.value if isinstance(node, ast.Assign) else node.iter
            if any(
                ast.unparse(one) in names for one in syntax.walk(source) if isinstance(one, (ast.Name, ast.Attribute))
            ):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (ast.unparse(one) for target in targets for one in _targets(target))


def _met(error: ErrorFact) -> tuple[OperandFact, OperandFact] | None:
    """The two variables that the failing expression joins, if it names exactly two and nothing else."""
    if not any(pattern.match(error.message) for pattern in (_SUM, _PRODUCT, _JOIN)):
        return None
    node = syntax.expression(error.expression)
    texts = _operands(node)
    by_path = {one.path: one for one in error.operands if one.kind == "tensor" and one.shape is not None}
    found = [by_path[text] for text in texts if text in by_path]
    return (found[0], found[1]) if len(found) == len(texts) == len(by_path) == _MATRIX else None


def _operands(node: ast.expr | None) -> list[str]:
    """Texts of both sides of an operator, or of the arguments of a call that takes two."""
    if isinstance(node, ast.BinOp):
        return [ast.unparse(node.left), ast.unparse(node.right)]
    if isinstance(node, ast.Compare) and len(node.comparators) == 1:
        return [ast.unparse(node.left), ast.unparse(node.comparators[0])]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = ast.unparse(node.func.value)
        inputs = [] if owner in _LIBRARIES else [node.func.value]
        listed = [e for a in node.args for e in (a.elts if isinstance(a, (ast.List, ast.Tuple)) else [a])]
        return [ast.unparse(one) for one in (*inputs, *listed) if not isinstance(one, ast.Constant)]
    return []


def _both(left: OperandFact, right: OperandFact) -> str:
    return f"`{left.path}` is {left.shape} and `{right.path}` {right.shape}"


def _product(error: ErrorFact, left: OperandFact, right: OperandFact) -> _Told:
    a, b = left.shape or (), right.shape or ()
    if not a or not b:
        return None
    inner = b[-2:][0]
    if a[-1] == inner:
        return None
    axes = "axes -1 and -2" if len(b) >= _MATRIX else "axes -1"
    message = (
        f"{_both(left, right)}: in a product {axes} must be as long as each other, and these are {a[-1]} and {inner}."
    )
    return message, _turned(error, left, right)


def _turned(error: ErrorFact, left: OperandFact, right: OperandFact) -> str:
    """The statement with one matrix turned, where that fits."""
    a, b = left.shape or (), right.shape or ()
    if len(b) >= _MATRIX and a[-1] == b[-1]:
        return with_operand(error, right.path, _transposed(right), last=True)
    if len(a) >= _MATRIX and a[-2] == b[-2:][0]:
        return with_operand(error, left.path, _transposed(left))
    return ""


def _transposed(one: OperandFact) -> str:
    return f"{one.path}.T" if len(one.shape or ()) == _MATRIX else f"{one.path}.transpose(-2, -1)"


def _sum(error: ErrorFact, left: OperandFact, right: OperandFact) -> _Told:
    a, b = left.shape or (), right.shape or ()
    lined = enumerate(zip(reversed(a), reversed(b), strict=False), 1)
    apart = [(n, x, y) for n, (x, y) in lined if x != y and 1 not in (x, y)]
    if not apart:
        return None
    n, x, y = apart[0]
    lengths = f"along axis -{n} they are {x} and {y} long"
    message = f"{_both(left, right)}: axes are lined up from the last one, and {lengths}."
    return message, _lined_up(error, left, right) or _resized(left, right, [one for one, _, _ in apart])


def _resized(left: OperandFact, right: OperandFact, apart: list[int]) -> str:
    """Of two batches of pictures that differ in height and width only, by a few: one made as large as the other."""
    a, b = left.shape or (), right.shape or ()
    near = all(abs(x - y) <= _NEAR < min(x, y) for x, y in zip(a[2:], b[2:], strict=False))
    if not len(a) == len(b) == _PICTURES or max(apart) > _MATRIX or not near or not left.path.isidentifier():
        return ""
    size = f"size={right.path}.shape[-2:]"
    return f"{left.path} = torch.nn.functional.interpolate({left.path}, {size})  # or output_padding in its last layer"


def _lined_up(error: ErrorFact, left: OperandFact, right: OperandFact) -> str:
    """The statement with axes behind the shorter operand, or with a matrix turned, where only one way fits."""
    a, b = left.shape or (), right.shape or ()
    if len(a) == len(b) == _MATRIX and a == b[::-1]:
        return with_operand(error, right.path, _transposed(right), last=True)
    short, rank, full = (right, len(b), a) if len(b) < len(a) else (left, len(a), b)
    starts = [n for n in range(len(full) - rank) if full[n : n + rank] == short.shape]
    if len(starts) != 1 or not rank:
        return ""
    axes = [":"] * rank + ["None"] * (len(full) - rank - starts[0])
    return with_operand(error, short.path, f"{short.path}[{', '.join(axes)}]", last=short is right)


def _join(error: ErrorFact, left: OperandFact, right: OperandFact) -> _Told:
    a, b = left.shape or (), right.shape or ()
    told = _JOIN.match(error.message)
    if told is None or len(a) != len(b):
        return None
    if told[1] is None:
        return f"{_both(left, right)}: `stack` lays tensors of one shape side by side.", ""
    apart = [n for n, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
    message = f"{_both(left, right)}: joined along axis {told[1]} they must agree in all others."
    return message, _along(error, apart[0]) if len(apart) == 1 else ""


def _along(error: ErrorFact, axis: int) -> str:
    """The statement that joins along another axis."""
    tree = ast.parse(error.expression, mode="eval").body
    if isinstance(tree, ast.Call) and ast.unparse(tree.func) in ("torch.cat", "torch.concat", "torch.concatenate"):
        return restated(error, f"{ast.unparse(tree.func)}({ast.unparse(tree.args[0])}, dim={axis})")
    return ""
