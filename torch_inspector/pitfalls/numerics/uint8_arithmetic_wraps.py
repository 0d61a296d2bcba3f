"""Whole numbers of 8 or 16 bits whose difference, sum or square does not fit."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import ExpressionFact, Run, assigned, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Ciphers and check sums go round at 256 on purpose, and say so.
_MODULAR = re.compile(r"%\s*256|\bmod(ulo)?\.?\s*256|\bbytes\(|\bbytearray\(", re.IGNORECASE)
_SLICED = re.compile(r"(\w+)\[[^\[\]]*[:,][^\[\]]*\]")
# Names of what holds the number of a class for each pixel or sample.
_CLASSES = re.compile(r"(?<![a-z])(gt|ids?|seg\w*)(?![a-z])|mask|label|target|class", re.IGNORECASE)
# What takes no fractions.
_COUNTING = frozenset(
    ["bincount", "one_hot", "embedding", "gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "index_add_",
     "index_select", "index_copy_", "index_fill_", "take"]
)  # fmt: skip
# Before the kind of number of an array.
_ARRAY = "numpy."
_RANGES = {"uint8": "0 to 255", "int8": "-128 to 127", "int16": "-32768 to 32767"}


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds arithmetic between such tensors that gave other numbers than it should."""
    # Where a cell failed, nobody knows which of its lines ran.
    for fact in run.expressions("wrapped") if run.error is None else ():
        if not _is_modular(run, fact):
            yield _finding(run, fact)


def _is_modular(run: Run, fact: ExpressionFact) -> bool:
    """True where bytes are reckoned with: the text speaks of 256 or makes bytes."""
    return fact.detail.endswith("uint8") and _MODULAR.search(run.source_of(fact.place.cell)) is not None


def _finding(run: Run, fact: ExpressionFact) -> Finding:
    first = fact.names[0] if fact.names else fact.text
    kind = fact.detail.removeprefix(_ARRAY)
    held = _RANGES.get(kind, "few numbers")
    return Finding(
        message=(
            f"`{fact.text}` is worked out in {kind}, which holds {held}: "
            f"{fact.share:.0%} of the results do not fit and come out as other numbers."
        ),
        subject=fact.target or first,
        fix=_fix(run, fact, _whole(first)),
        # Bytes that stay bytes may go round on purpose.
        severity="" if fact.sure else "hint",
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(
            Evidence("kind of number", kind),
            Evidence("results that do not fit", round(100 * fact.share, 1), "%"),
            *(Evidence(name, str(shape)) for name, shape in zip(fact.names, fact.shapes, strict=False)),
        ),
    )


def _fix(run: Run, fact: ExpressionFact, name: str) -> str:
    """Another type of number before the arithmetic: whole numbers for classes, and those of a picture for a picture."""
    if fact.detail.startswith(_ARRAY):
        return assigned(name, "{}.astype('int32')", "before the arithmetic")
    if _are_classes(fact) or _is_counted(run, fact, name):
        return assigned(name, "{}.long()", "whole numbers of 64 bits, before the arithmetic")
    return assigned(name, "{}.float()", _remark(fact))


def _are_classes(fact: ExpressionFact) -> bool:
    """True for the numbers of classes, by their names, or where each is to be the one before: `masks - 1`."""
    before = len(fact.names) > 1 and fact.names[1] == "1" and not fact.text.startswith("1")
    return before or any(_CLASSES.search(name) for name in (fact.target, *fact.names[:1]))


def _is_counted(run: Run, fact: ExpressionFact, name: str) -> bool:
    """True if the text counts the results or the tensor, or takes rows by them: torch wants whole numbers there."""
    tree = syntax.parse(run.source_of(fact.place.cell))
    scope = syntax.scope_at(tree, fact.place.line or 0) if tree is not None else None
    own = {fact.text, fact.target, name} - {""}
    return scope is not None and any(
        isinstance(part, ast.expr) and ast.unparse(part) in own
        for given in map(_numbered, syntax.walk(scope))
        for one in given
        for part in syntax.walk(one)
    )


def _numbered(node: ast.AST) -> list[ast.expr]:
    """What an expression reads as whole numbers: the arguments of `bincount`, and an index."""
    if isinstance(node, ast.Subscript):  # `x[x > 0]` is taken by truths
        return [] if any(isinstance(one, ast.Compare) for one in syntax.walk(node.slice)) else [node.slice]
    if not isinstance(node, ast.Call) or syntax.last_part(node.func) not in _COUNTING:
        return []
    return [*node.args, *(one.value for one in node.keywords)]


def _remark(fact: ExpressionFact) -> str:
    image = "; .clamp(0, 255).byte() of the result is a picture again" if fact.detail == "uint8" else ""
    second = fact.names[1] if len(fact.names) == 2 and fact.names[1] != fact.names[0] else ""  # noqa: PLR2004
    widened = f"; {second} may stay as it is" if re.search("[A-Za-z]", second) else ""
    return f"or .int(), before the arithmetic{widened}{image}"


def _whole(text: str) -> str:
    """The tensor that a slice is cut from: `frames` of `frames[:, 0]`, which no dictionary or list would take."""
    sliced = _SLICED.fullmatch(text)
    return sliced[1] if sliced else text
