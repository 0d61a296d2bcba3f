"""Arrays, lists and tables that were given to a layer, a loss or a function of torch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, ForeignFact, Run, restated, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Arguments that are numbers of rows or classes.
_PLACES = re.compile(r"^(?:embedding\w*|one_hot)\(\)")
_CLASSES = re.compile(r"^(?:cross_entropy_loss|nll_loss\w*)\(\): argument 'target'")
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
            message=f"`{first.text}`{also} is {_what(first)}, and `{name}` wants a tensor: {_why(first)}.",
            subject=first.text,
            fix=_fix(error, call, first),
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


def _why(one: ForeignFact) -> str:
    if one.inside.startswith("tensors"):
        return "a recurrent layer gives its outputs and its state, a loader all parts of a batch"
    return "torch does not make one on its own"


def _fix(error: ErrorFact, call: ast.Call, first: ForeignFact) -> str:
    """The variable that the caller gave made a tensor there; else the statement with tensors made in it."""
    if first.known_as.isidentifier() and first.text.isidentifier() and error.caller and len(error.foreign) == 1:
        made = _tensor(error, first._replace(text=first.known_as))
        return f"{first.known_as} = {made}  # before {error.caller}" if made else ""
    made_of = {one.text: _tensor(error, one) for one in error.foreign}
    if not all(made_of.values()):
        return ""
    new = ast.Call(call.func, [_mended(one, made_of) for one in call.args], [])
    new.keywords = [ast.keyword(one.arg, _mended(one.value, made_of)) for one in call.keywords]
    return restated(error, ast.unparse(new))


def _mended(node: ast.expr, made_of: dict[str, str]) -> ast.expr:
    text = made_of.get(ast.unparse(node))
    return (syntax.expression(text) if text else None) or node


def _tensor(error: ErrorFact, one: ForeignFact) -> str:
    """An expression for the tensor; empty if it is not known what is in there."""
    dtype, device = _dtype(error, one), _device(error)
    if one.kind == "array" and one.dtype == dtype and not device:
        return f"torch.from_numpy({one.text})"
    if one.kind in ("array", "table"):
        return f"torch.as_tensor({one.text}{'.to_numpy()' if one.kind == 'table' else ''}, dtype=torch.{dtype}{device})"
    if one.inside == "numbers":
        return f"torch.tensor({one.text}, dtype=torch.{dtype}{device})"
    if one.inside == "arrays":
        return f"torch.stack([torch.as_tensor(one, dtype=torch.{dtype}{device}) for one in {one.text}])"
    samples = one.kind == "list" and one.inside == "tensors of one shape" and one.count > _PAIR
    return (f"torch.stack({one.text})" if samples else f"{one.text}[0]") if one.inside else ""


def _dtype(error: ErrorFact, one: ForeignFact) -> str:
    """The type that is wanted: int64 of places and classes, that of the weights of shares and of all other data."""
    shares = one.dtype.startswith("float") and one.axes > 1
    if _PLACES.match(error.message) or (_CLASSES.match(error.message) and not shares):
        return "int64"
    weights = [owner.weight_dtype for owner in error.operands if owner.weight_dtype]
    return weights[0] if weights else "float32"


def _device(error: ErrorFact) -> str:
    """The place of the weights, or of the other arguments, if that is no CPU."""
    places = [place for owner in error.operands for place in owner.devices if place != "cpu"]
    return f", device={places[0]!r}" if places else ""
