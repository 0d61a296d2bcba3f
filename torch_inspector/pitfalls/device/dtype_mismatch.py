"""Operands of different number types, most often float64 data from NumPy and float32 weights."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import AttributeFact, ErrorFact, OperandFact, Run, StaleStateFact, assigned, in_scope, syntax
from torch_inspector.facts.index_given import index_in, is_of_embedding, sides_of, with_call
from torch_inspector.facts.loaded_anew import loaded_anew
from torch_inspector.facts.lost_casts import lost_cast
from torch_inspector.facts.plain import plain_attribute, registered, unconverted
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_KINDS = ("RuntimeError", "ValueError", "TypeError", "IndexError")
# What torch 2.4 to 2.13 says, with the types left out.
_REFUSALS = (
    "must have the same dtype",
    "to have the same dtype",
    "to have same dtype",
    "have the same scalar type",
    "does not match weight dtype",
    "dtypes match, got",
    "mixed dtype (CPU)",
    "to be equal to src.dtype",
    "Type promoting not supported",
    "input must have the type torch.",
    "have one of the following scalar types",
)
# What it says of an index whose numbers are not whole, or of too small a type.
_INDEX = re.compile(
    r"Expected dtype int(32(/| or )int)?64 for index|tensors used as indices must be long"
    r"|dtype of indices should be Long|one_hot is only applicable to index tensor|Expected a long tensor for index"
)
# What a step says of the types of its numbers: other messages have the word for the types of Python.
_OF_NUMBERS = re.compile(r"\bdtypes?\b|\b(scalar|result) types?\b")
# Said of devices too (`torch.cuda.FloatTensor`) and of the classes for a loss (`expected scalar type Long`).
_EXPECTED = re.compile(r"expected scalar type (\w+) but found (\w+)|Found dtype (\w+) but expected (\w+)")
_SHOULD = re.compile(r"Input type \((.+?)\) and (?:weight|bias) type \((.+?)\) should be the same")
_NAMES = {
    "double": "float64", "float": "float32", "half": "float16", "bfloat16": "bfloat16", "long": "int64",
    "int": "int32", "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "long int": "int64",
    "float64": "float64", "float32": "float32", "float16": "float16", "int64": "int64", "int32": "int32",
    "c10::half": "float16", "c10::bfloat16": "bfloat16", "signed char": "int8", "unsigned char": "uint8",
}  # fmt: skip
_WORDS = re.compile(r"\b(?:torch\.)?(Double|Float|Half|BFloat16|Long|Int|Short|Char|Byte|Bool)(?:Tensor)?\b")
_SMALL_WORDS = re.compile(
    r"(?:\bgot:? |!= |\btype |\bdtype \(?|: )(?:torch\.)?(double|float64|float32|float16|float|half)\b"
)
_WHOLE = ("int64", "int32", "int16", "bool")
_FLOATS = ("float64", "float32", "float16", "bfloat16")
# A longer expression names nothing.
_LONGEST = 60
_CALLS = {"float32": ".float()", "float64": ".double()", "float16": ".half()", "int64": ".long()"}


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds the operand whose numbers have another type than the rest, when torch has refused to mix them."""
    error = run.error
    state = error.stale_state if error is not None else None
    differs = state is not None and state.state_dtype != state.dtype
    if error is not None and state is not None and differs and _OF_NUMBERS.search(error.message):
        yield _of_state(error, state)
        return
    if error is None or error.kind not in _KINDS or not _is_meant(error.message):
        return
    kept = unconverted(run, error) if not _is_index(error.message) else None
    if kept is not None and kept.dtype in _FLOATS:
        yield _left_behind(run, error, kept.owner_dtypes[0], kept)
        return
    home = _home(error)
    odd = _odd_one(error, home)
    attribute = _attribute(run, error, home, odd)
    yield _left_behind(run, error, home, attribute) if attribute is not None else _finding(run, error, home, odd)


def _attribute(run: Run, error: ErrorFact, home: str, odd: OperandFact | None) -> AttributeFact | None:
    """A plain tensor attribute that kept its type when the module around it was given another."""
    if home not in _FLOATS or _is_index(error.message):
        return None
    place = odd.made_at if odd is not None else None
    lines = run.source_of(place.cell).splitlines() if place is not None and place.cell == error.place.cell else []
    made = lines[place.line - 1] if place is not None and place.line is not None and place.line <= len(lines) else ""
    types = {odd.dtype} if odd is not None else {*_named(error.message)} - {home}
    text = error.expression if odd is None or odd.path.startswith("self.") else made
    return plain_attribute(run, text, types & {*_FLOATS})


def _of_state(error: ErrorFact, state: StaleStateFact) -> Finding:
    name = f"`{state.path}`" if state.path else f"the {state.kind} optimizer"
    return Finding(
        message=(
            f"{name} keeps `{state.state}` from when its weights were {state.state_dtype}; they are {state.dtype} "
            f"now, and {state.kind} does not mix the types."
        ),
        subject=state.path or state.kind,
        fix=loaded_anew(state, "its state takes the type of the weights"),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence("weights", state.dtype), Evidence(state.state, state.state_dtype)),
    )


def _left_behind(run: Run, error: ErrorFact, home: str, one: AttributeFact) -> Finding:
    return Finding(
        message=(
            f"`{one.path}` has {one.dtype} numbers, the weights of `{one.owner}` {home}: a plain tensor attribute is "
            "not converted with the module, and torch does not mix the types here."
        ),
        subject=one.path,
        fix=registered(one, run.source_of(one.place.cell)),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence("attribute", f"{one.kind}.{one.name}"), *_evidence(error)),
    )


def _is_meant(message: str) -> bool:
    if _is_index(message):
        return True
    expected = _EXPECTED.search(message)
    if expected is not None:
        wanted, found = (expected[1], expected[2]) if expected[1] else (expected[4], expected[3])
        # Whole numbers for classes, or classes where shares are wanted, are another mistake.
        return _known(wanted) in _FLOATS and _known(found) in _FLOATS
    should = _SHOULD.search(message)
    if should is not None:
        return ("cuda" in should[1]) == ("cuda" in should[2]) and (
            "mkldnn" not in message.lower() or "float" in message
        )
    return any(text in message for text in _REFUSALS)


def _is_index(message: str) -> bool:
    return is_of_embedding(message) or _INDEX.search(message) is not None


def _known(word: str) -> str:
    plain = word.strip().removeprefix("torch.").removeprefix("cuda.").removesuffix("Tensor")
    return _NAMES.get(plain.lower(), "")


def _named(message: str) -> list[str]:
    """Types that the message names, in order."""
    should = _SHOULD.search(message)
    words = list(should.groups()) if should else _WORDS.findall(message) or _SMALL_WORDS.findall(message)
    return list(dict.fromkeys(known for known in map(_known, words) if known))


def _home(error: ErrorFact) -> str:
    """The type of the rest: that of the weights, or of two kinds of data the one that training uses."""
    if _is_index(error.message):
        return "int64"
    modules = sorted(error.operands, key=lambda one: one.nested)
    weights = [one.weight_dtype for one in modules if one.weight_dtype]
    parameters = [one.dtype for one in error.operands if one.requires_grad and one.is_leaf and one.dtype in _FLOATS]
    if weights or parameters:
        return (weights or parameters)[0]
    types = [one.dtype for one in error.operands if one.dtype] or _named(error.message)
    for usual in ("float32", "bfloat16", "float16", "float64"):
        if usual in types or usual in _named(error.message):
            return usual
    return ""


def _odd_one(error: ErrorFact, home: str) -> OperandFact | None:
    """A tensor of another type, what met in the failing operation first; None if none is known."""
    odd = [one for one in error.operands if one.kind == "tensor" and one.dtype and one.dtype != home]
    if _is_index(error.message):
        return _index(error, odd)
    named = _named(error.message)
    told = [one for one in odd if one.dtype in named] or _buffers(error, home, named)
    told = told or (odd if len(odd) == 1 and odd[0].dtype not in _WHOLE else [])
    return min(told, key=lambda one: one.nested, default=None) if home else None


def _index(error: ErrorFact, odd: list[OperandFact]) -> OperandFact | None:
    """What the failing expression uses as an index, if that is a variable."""
    part = index_in(error.expression, error.message)
    texts = {ast.unparse(one) for one in syntax.walk(part)} if part is not None else set[str]()
    found = [one for one in odd if one.path in texts]
    return found[0] if len(found) == 1 else None


def _buffers(error: ErrorFact, home: str, named: list[str]) -> list[OperandFact]:
    """The buffers of losses that have another type, each as an operand of its own: `criterion.weight`."""
    return [
        one._replace(path=f"{one.path}.{name}", kind="buffer", dtype=dtype, nested=False)
        for one in error.operands
        for name, dtype in one.buffer_dtypes
        if dtype != home and dtype in named
    ]


def _finding(run: Run, error: ErrorFact, home: str, odd: OperandFact | None) -> Finding:
    lost, said = lost_cast(run, error, odd, home), _message(error, home, odd)
    return Finding(
        message=said if lost is None else f"{said.removesuffix('.')}; {lost.said}.",
        subject=odd.path if odd else lost.fix.partition(" ")[0] if lost else _without_name(error),
        fix=in_scope(run, error.place, _fix(error, home, odd)) if lost is None else lost.fix,
        line=error.place.line,
        cell=error.place.cell,
        evidence=tuple(_evidence(error)),
    )


def _without_name(error: ErrorFact) -> str:
    """What to call numbers that no variable holds: the layer that refused them, or the text that made them."""
    owner = next((one.path for one in error.operands if one.weight_dtype), "")
    part = index_in(error.expression, error.message) if _is_index(error.message) else None
    text = owner or (ast.unparse(part) if part is not None else error.expression)
    return text if len(text) <= _LONGEST else ""


def _message(error: ErrorFact, home: str, odd: OperandFact | None) -> str:
    if _is_index(error.message):
        return _message_of_index(error, odd)
    if odd is None:
        types = " and ".join(_named(error.message)) or "two number types"
        return f"{types} met in {f'`{error.expression}`' if error.expression else 'one operation'}{_weights(error)}."
    also = f" (`{odd.known_as}` in the call)" if odd.known_as and odd.known_as != odd.path else _called(error)
    rest = [f"`{o.path}`" for o in error.operands if o is not odd and home in (o.dtype, o.weight_dtype)]
    others = f"{' and '.join(dict.fromkeys(rest[:2]))} {'have' if len(rest) > 1 else 'has'}" if rest else "the rest has"
    if home == "int64":
        others = "the operation needs"
    source = " NumPy's floats are float64." if odd.dtype == "float64" else ""
    return f"`{odd.path}`{also} has {odd.dtype} numbers, {others} {home}: torch does not mix them here.{source}"


def _message_of_index(error: ErrorFact, odd: OperandFact | None) -> str:
    where = f" in `{error.expression}`" if error.expression else ""
    if odd is None:
        return f"the index{where} is not of whole numbers of the type int64."
    also = f" (`{odd.known_as}` in the call)" if odd.known_as and odd.known_as != odd.path else ""
    return f"`{odd.path}`{also} is used as an index{where} and has {odd.dtype} numbers: {_wanted(error, odd)}."


def _wanted(error: ErrorFact, odd: OperandFact) -> str:
    return "a mask must be bool" if _is_mask(error, odd) else "an index must be int64"


def _is_mask(error: ErrorFact, odd: OperandFact) -> bool:
    """True for an index that is called a mask, or has one number for each of a matrix."""
    if "used as indices" not in error.message:
        return False
    same = any(one.shape == odd.shape and one is not odd for one in error.operands)
    return "mask" in odd.path.lower() or (same and len(odd.shape or ()) > 1)


def _called(error: ErrorFact) -> str:
    return f" (in `{error.caller}`)" if error.caller else ""


def _weights(error: ErrorFact) -> str:
    owner = next((one for one in error.operands if one.weight_dtype), None)
    return f"; the weights of `{owner.path}` are {owner.weight_dtype}" if owner is not None else ""


def _fix(error: ErrorFact, home: str, odd: OperandFact | None) -> str:
    if odd is not None and _is_mask(error, odd):
        return assigned(odd.path, "{}.bool()")
    call = _CALLS.get(home, f".to(torch.{home})" if home else ".float()")
    if odd is None:
        part = index_in(error.expression, error.message) if _is_index(error.message) else _odd_side(error, home)
        if part is not None and not isinstance(part, (ast.Tuple, ast.Slice)):
            return with_call(error.expression, part, call)
        return _with_argument(error.expression, call) or f"x = x{call}  # for what goes into {error.expression}"
    if odd.kind == "buffer":
        owner, _, name = odd.path.rpartition(".")
        return f"{owner}{call}  # its {name} too; or make {name} of {home} numbers"
    return assigned(odd.path, f"{{}}{call}")


def _odd_side(error: ErrorFact, home: str) -> ast.expr | None:
    """Of two operands whose types the message names in their order, the one of another type."""
    sides, types = sides_of(error.expression), _named(error.message)
    odd = [side for side, one in zip(sides, types, strict=False) if one != home] if len(sides) == len(types) else []
    return odd[0] if len(odd) == 1 else None


def _with_argument(expression: str, call: str) -> str:
    """`net(torch.from_numpy(x).float())` for `net(torch.from_numpy(x))`."""
    try:
        tree = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError):
        return ""
    if not isinstance(tree, ast.Call) or len(tree.args) != 1:
        return ""
    given = ast.unparse(tree.args[0])
    given = f"({given})" if isinstance(tree.args[0], (ast.BinOp, ast.UnaryOp)) else given
    return f"{ast.unparse(tree.func)}({given}{call})"


def _evidence(error: ErrorFact) -> Iterator[Evidence]:
    for one in error.operands:
        if one.dtype or one.weight_dtype:
            yield Evidence(f"{one.path} ({one.kind})", one.dtype or f"weights {one.weight_dtype}")
