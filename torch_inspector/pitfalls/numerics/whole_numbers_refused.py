"""A mean, a norm or a softmax of whole numbers, which torch refuses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, Run, restated, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_KINDS = ("RuntimeError", "NotImplementedError")
# What torch 2.4 to 2.13 says; the type where it names it.
_REFUSED = re.compile(
    r"(?:mean|nanmean)\(\): (?:could not infer output dtype|input dtype should be)|"
    r"std and var (?:only support|supports tensors of) floating point|"
    r"Expected a floating point or complex tensor|"
    r"\" not implemented for '(?:Long|Int|Short|Char|Byte|Bool)'"
)
_TYPE = re.compile(r"(?:Got:? |for ')(Long|Int|Short|Char|Byte|Bool)\b")
_NAMES = {"Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool"}
# Modules whose functions take the tensor as their first argument.
_HOMES = re.compile(r"(?:torch|F|nn|functional|torch\.\w+|torch\.nn\.functional|nn\.functional)$")


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds what was asked of whole numbers, and the call with a change of type in it."""
    error = run.error
    if error is None or error.kind not in _KINDS or not _REFUSED.search(error.message):
        return
    told = _TYPE.search(error.message)
    dtype = _NAMES[told[1]] if told else next((one.dtype for one in error.operands if _is_whole(one.dtype)), "")
    what = f"`{error.expression}`" if error.expression else "this line"
    fix = _fix(error)
    yield Finding(
        message=(
            f"{what} was asked of {f'{dtype} numbers' if dtype else 'whole numbers'}; "
            "its result is no whole number, and torch does not choose a type for it."
        ),
        subject=_subject(error),
        fix=fix,
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence("type", dtype or "whole numbers"),),
    )


def _is_whole(dtype: str) -> bool:
    return dtype in _NAMES.values()


def _call(expression: str) -> ast.Call | None:
    node = syntax.expression(expression)
    # `(a == b).mean().item()` fails at the mean; a reader of the number stands around it.
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist"):
        node = node.func.value
    return node if isinstance(node, ast.Call) else None


def _given(call: ast.Call) -> ast.expr | None:
    """The tensor that a call is about: what stands before a method, or the first argument of a function."""
    func = call.func
    if isinstance(func, ast.Attribute) and not _HOMES.match(ast.unparse(func.value)):
        return func.value
    return call.args[0] if call.args else None


def _subject(error: ErrorFact) -> str:
    call = _call(error.expression)
    given = _given(call) if call is not None else None
    return ast.unparse(given) if isinstance(given, (ast.Name, ast.Attribute)) else ""


def _fix(error: ErrorFact) -> str:
    call = _call(error.expression)
    given = _given(call) if call is not None else None
    if call is None or given is None or error.expression.count(ast.unparse(given)) == 0:
        return ".float()  # on the numbers, before this call"
    text = ast.unparse(given)
    closed = isinstance(given, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
    changed = f"{text}.float()" if closed else f"({text}).float()"
    old = ast.unparse(call)
    new = old.replace(text if closed else f"({text})" if f"({text})." in old else text, changed, 1)
    return restated(error, ast.unparse(ast.parse(error.expression)).replace(old, new, 1))
