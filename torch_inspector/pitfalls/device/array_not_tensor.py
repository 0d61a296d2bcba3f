"""Arrays, lists and tables that were given to a layer, a loss or a function of torch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, ForeignFact, Run, restated, syntax
from torch_inspector.facts.before_call import made_before
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Arguments that are numbers of rows or classes.
_PLACES = re.compile(r"^(?:embedding\w*|one_hot)\(\)")
_CLASSES = re.compile(r"^(?:cross_entropy_loss|nll_loss\w*)\(\): argument 'target'")
# Functions that take places or masks, and what torch calls these.
_CHOOSERS = re.compile(r"(?:^|\.)(?:index_\w+|gather|scatter\w*|take\w*|masked_\w+|where)$")
_INDEX = re.compile(r"argument 'ind(?:ex|ices)'|^(?:gather|index_select)\(\) received")
_MASK = re.compile(r"argument '(?:mask|condition)'")
# Types of arrays that tensors have.
_NUMBERS = re.compile(r"u?int|float|complex|bool")
# Functions of `functional` that take whole numbers; of torch, those that refuse them, alone or beside floats.
_ANY_KIND = frozenset(["one_hot", "pad", "embedding", "embedding_bag", "multilabel_margin_loss"])
_FLOATS = frozenset(
    ["mean", "nanmean", "std", "std_mean", "var", "var_mean", "norm", "cov", "corrcoef", "softmax", "log_softmax",
     "quantile", "nanquantile", "logcumsumexp", "histc", "histogram", "frac", "matmul", "mm", "bmm", "mv", "dot",
     "inner", "tensordot", "einsum", "addmm", "baddbmm", "addmv", "cdist", "pdist", "allclose", "isclose", "dropout",
     "normal", "poisson", "bernoulli", "multinomial", "complex", "polar", "svd", "qr", "det", "logdet", "pinverse",
     "matrix_exp"]
)  # fmt: skip
_RECURRENT = frozenset(["RNN", "LSTM", "GRU"])
# A batch of a loader has at least its data and its labels; more than that are samples.
_PAIR = 2


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds what was no tensor, and the statement with a tensor made of it."""
    error = run.error
    if error is None or not error.foreign:
        return
    call, first = syntax.expression(error.expression), error.foreign[0]
    if isinstance(call, ast.Call):
        name = ast.unparse(call.func)
        also = f" (`{first.known_as}` in the call)" if first.known_as and first.known_as != first.text else ""
        yield Finding(
            message=f"`{first.text}`{also} is {_what(first)}, and `{name}` wants a tensor: {_why(run, first)}.",
            subject=first.text,
            fix=_fix(run, error, call, first),
            line=error.place.line,
            cell=error.place.cell,
            evidence=tuple(Evidence(one.text, one.dtype or one.inside or one.kind) for one in error.foreign),
        )


def _what(one: ForeignFact) -> str:
    if one.kind == "array":
        return f"an array of NumPy, of {one.dtype} numbers"
    if one.kind == "table":
        return "a table of pandas"
    return f"a {one.kind} of {one.count}" + (" tensors" if one.inside.startswith("tensors") else "")


def _why(run: Run, one: ForeignFact) -> str:
    if _is_of_recurrent(run, one):
        return "a recurrent layer gives its outputs and its state"
    several = one.inside.startswith("tensors")
    return "it does not join several on its own" if several else "torch does not make one on its own"


def _is_of_recurrent(run: Run, one: ForeignFact) -> bool:
    """True for `h` if the text gives it nothing but what a recurrent layer returns: `h = rnn(x)`."""
    trees = [tree for past in (*run.earlier, run) if (tree := syntax.parse(past.cell.code)) is not None]
    given: dict[str, list[ast.expr]] = {}
    for node in (node for tree in trees for node in syntax.walk(tree)):
        for target, value in _pairs(node) if isinstance(node, ast.Assign) else ():
            given.setdefault(ast.unparse(target), []).append(value)
    layers = {name for name, values in given.items() if all(_called(value) in _RECURRENT for value in values)}
    values = given.get(one.known_as or one.text, [])
    return one.kind == "tuple" and bool(values) and all(_owner(value) in layers for value in values)


def _pairs(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What an assignment gives to which name, those side by side too."""
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def _owner(value: ast.expr) -> str:
    return ast.unparse(value.func) if isinstance(value, ast.Call) else ""


def _called(value: ast.expr) -> str:
    return _owner(value).rpartition(".")[2]


def _fix(run: Run, error: ErrorFact, call: ast.Call, first: ForeignFact) -> str:
    """The variable that the caller gave made a tensor there; else the statement with tensors made in it."""
    if first.known_as.isidentifier() and first.text.isidentifier() and error.caller and len(error.foreign) == 1:
        made = _tensor(run, error, first._replace(text=first.known_as))
        return made_before(run, error, first.known_as, made) if made else ""
    made_of = {one.text: _tensor(run, error, one) for one in error.foreign}
    if not all(made_of.values()):
        return ""
    new = ast.Call(call.func, [_mended(one, made_of) for one in call.args], [])
    new.keywords = [ast.keyword(one.arg, _mended(one.value, made_of)) for one in call.keywords]
    return restated(error, ast.unparse(new))


def _mended(node: ast.expr, made_of: dict[str, str]) -> ast.expr:
    text = made_of.get(ast.unparse(node))
    return (syntax.expression(text) if text else None) or node


def _tensor(run: Run, error: ErrorFact, one: ForeignFact) -> str:
    """An expression for the tensor; empty if it is not known what is in there."""
    dtype, device = _dtype(error, one), _device(error)
    given = (f", dtype=torch.{dtype}" if dtype not in ("", one.dtype) else "") + device
    if one.kind == "array":
        made = f"torch.as_tensor({one.text}{given})" if given else f"torch.from_numpy({one.text})"
        return made if _NUMBERS.match(one.dtype) else ""
    if one.kind == "table":
        return f"torch.as_tensor({one.text}.to_numpy(){given})"
    if one.inside == "numbers":
        return f"torch.tensor({one.text}{given})"
    if one.inside == "arrays":
        return f"torch.stack([torch.as_tensor(one{given}) for one in {one.text}])"
    return _of_tensors(run, one)


def _of_tensors(run: Run, one: ForeignFact) -> str:
    if one.kind == "list" and one.inside == "tensors of one shape" and one.count > _PAIR:
        return f"torch.stack({one.text})"
    return f"{one.text}[0]" if one.inside and _is_of_recurrent(run, one) else ""


def _dtype(error: ErrorFact, one: ForeignFact) -> str:
    """The type that is wanted: int64 of places and classes, bool of masks, that of the weights; empty for its own."""
    chosen = _chosen(error, one)
    if chosen:
        return chosen
    shares = one.dtype.startswith("float") and one.axes > 1
    if _PLACES.match(error.message) or (_CLASSES.match(error.message) and not shares):
        return "int64"
    weights = [owner.weight_dtype for owner in error.operands if owner.weight_dtype]
    beside = [other.dtype for other in error.operands if other.kind == "tensor" and "float" in other.dtype]
    if weights or (beside and one.dtype.startswith("float")):
        return [*weights, *beside][0]
    whole = not one.dtype.startswith(("float", "complex"))
    return [*beside, "float32"][0] if whole and _wants_floats(error) else ""


def _wants_floats(error: ErrorFact) -> bool:
    """True for layers, losses and what is computed with floats: they refuse whole numbers."""
    call = syntax.expression(error.expression)
    if not isinstance(call, ast.Call):
        return False
    text = ast.unparse(call.func)
    owner, _, name = text.rpartition(".")
    of_module = any(one.path == text and one.kind != "tensor" for one in error.operands)
    if isinstance(call.func, ast.Call) or of_module or owner.rpartition(".")[2] in ("F", "functional"):
        return name not in _ANY_KIND
    return name in _FLOATS or owner.endswith("linalg")


def _chosen(error: ErrorFact, one: ForeignFact) -> str:
    """The type of places and masks for a function that picks by them; empty for others."""
    call = syntax.expression(error.expression)
    if not isinstance(call, ast.Call) or not _CHOOSERS.search(ast.unparse(call.func)):
        return ""
    if one.dtype:
        return "bool" if one.dtype == "bool" else "int64" if one.dtype.lstrip("u").startswith("int") else ""
    return "bool" if _MASK.search(error.message) else "int64" if _INDEX.search(error.message) else ""


def _device(error: ErrorFact) -> str:
    """The place of the weights, or of the other arguments, if that is no CPU."""
    places = [place for owner in error.operands for place in owner.devices if place != "cpu"]
    return f", device={places[0]!r}" if places else ""
