"""Variables that an optimizer holds, outside of any module, and whether they were copied from the weights of one."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_COPIED = re.compile(r"\.clone\(|\.detach\(|\bdeepcopy\(|\bParameter\(|\.data\b|torch\.(tensor|clone)\(")
_PARAMETERS = re.compile(r"(?<![\w.])([\w.]+)\.(?:named_)?parameters\(\)")
# A group of an optimizer under a name of its own, as a loop over `param_groups` leaves one.
_OF_GROUP = re.compile(r"\w+\[['\"]params['\"]\]|.*\bparam_groups\b")
# Variables that are named one by one.
_NAMED = 4


def held_variables(run: Run, keys: frozenset[int]) -> str:
    """The variables that lead to all of some tensors: "`params`", "`w` and `b`"; empty where one has none."""
    named = (one for one in run.after.tensors if one.key in keys and one.is_leaf and one.path)
    found = {one.key: one.path for one in named if not _OF_GROUP.match(one.path)}
    names = list(dict.fromkeys(re.split(r"[.\[]", path)[0] for path in found.values()))
    return " and ".join(f"`{name}`" for name in names) if keys and keys == found.keys() and len(names) <= _NAMED else ""


def copied_from(run: Run, name: str) -> str:
    """The model whose parameters the only statement that makes a variable goes through and copies; empty otherwise."""
    trees = {past.cell.source: syntax.parse(past.cell.source) for past in (*run.earlier, run)}
    made = [
        ast.unparse(one.value)
        for tree in trees.values()
        for one in (syntax.own_statements(tree) if tree is not None else ())
        if isinstance(one, ast.Assign) and any(ast.unparse(target) == name for target in one.targets)
    ]
    models = set(_PARAMETERS.findall(made[0])) if len(made) == 1 and _COPIED.search(made[0]) else set()
    return models.pop() if len(models) == 1 else ""
