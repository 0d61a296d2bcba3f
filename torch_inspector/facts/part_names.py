"""What the user can type to get a parameter or a called model: `center.weight`, `net[0].weight`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.facts.forwards import ForwardFact
    from torch_inspector.facts.run import Run

_NUMBER = re.compile(r"\.(\d+)(?=[.\[]|$)")
# Text in quotes, or a name with what is behind its dots: the number of a part, never a fraction.
_PATHS = re.compile(r"""\"[^\"\n]*\"|'[^'\n]*'|(?<![\w.])[A-Za-z_]\w*(?:\[[^\[\]\n'\"]*\]|\.\w+)+""")


def typed(path: str) -> str:
    """`net[0].weight` for the path `net.0.weight`."""
    return _NUMBER.sub(r"[\1]", path)


def typed_in(text: str) -> str:
    """A subject or a fix with all paths of that kind in it; what stands in quotes stays, as the keys of a state."""
    return _PATHS.sub(lambda found: found[0] if found[0][0] in "\"'" else typed(found[0]), text)


def parameter_path(run: Run, key: int) -> str:
    """A parameter by the module that has it, else by the variable that is one; an index into a list comes last."""
    for module in sorted(run.after.modules, key=lambda one: "[" in one.path):
        name = dict(module.parameter_names).get(key)
        if name is not None and module.path:
            return typed(f"{module.path}.{name}")
    tensors = [tensor.path for tensor in run.after.tensors if tensor.key == key]
    return min(tensors, key=lambda path: "[" in path, default="")


def called_path(run: Run, calls: list[ForwardFact]) -> str:
    """What was called: by its name there, else the model of which parts were called, such as two embeddings."""
    named = next((call.name for call in calls if call.name not in ("", "self")), "")
    keys = frozenset[int]().union(*(call.parameter_keys for call in calls))
    wholes = [one.path for one in (*run.after.modules, *run.before.modules) if one.path and keys <= one.parameter_keys]
    whole = min(wholes, key=lambda path: ("[" in path, path.count(".")), default="") if keys else ""
    return named or whole or next((run.module_path(call.module) or call.kind for call in calls), "the model")
