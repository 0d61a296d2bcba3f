"""The expressions that a call gives the parameters of a function."""

from __future__ import annotations

import ast
from typing import Any


def arguments_of(call: ast.Call, function: Any) -> dict[str, ast.expr]:
    """The expression that each parameter of a function was given by a call."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args) if one.arg not in {"self", "cls"}]
    given = dict(zip(names, call.args, strict=False))
    given.update((one.arg, one.value) for one in call.keywords if one.arg)
    return given
