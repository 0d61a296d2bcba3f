"""A model of which one part was put into eval mode for predictions, and another stays in train mode."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.forwards import ForwardFact, ModeFact
    from torch_inspector.facts.run import Run

# Who writes this lets dropout answer on purpose, or may.
_SAMPLING = re.compile(
    r"mc_?drop|monte|mcd\b|uncertain|sampl|bayes|posterior|ensembl|stochastic|\bnoise|varianc|\.std\(", re.IGNORECASE
)
# Rows that are asked about several times in one batch.
_REPEATED = re.compile(
    r"\b(repeat|repeat_interleave|tile|expand|expand_as|broadcast_to)\("
    r"|\b(cat|stack|concat|concatenate|vstack)\(\s*[\[(]+\s*([\w.]+\s*,?\s*[\])]\s*\*"
    r"|(?P<one>[\w.]+) for (?!(?P=one)\b))"
)
_SLEEPS = ("eval", "train")


class PartLeft(NamedTuple):
    """The statement and what it leaves."""

    text: str
    """`net.body.eval()`."""
    awake: str
    """`net.head`."""


def part_left(run: Run, call: ForwardFact, since: int) -> PartLeft | None:
    """What put a named part of a called model into eval mode since its training, and the part that it left.

    None where answers may be samples: one input is asked about several times, or the text speaks of it.
    """
    modes = [one for one in run.trace.modes if since < one.order < call.order and not one.training]
    if call.grad_enabled or not modes or not call.awake_parts or _may_sample(run, call):
        return None
    names = [name for name in (run.module_path(call.module), call.name) if name]
    texts = [_of_part(run, one, names) for one in modes]
    parts = [f"{names[0]}{_typed(part)}" for part in call.awake_parts] if names else []
    if not all(texts) or any(
        _reaches(text, f"{name}{_typed(part)}") for text in texts for name in names for part in call.awake_parts
    ):
        return None
    return PartLeft(texts[-1], parts[0]) if len(parts) == 1 else None


def _may_sample(run: Run, call: ForwardFact) -> bool:
    loops = sum(len(caller.loops) for caller in call.callers)
    cells = {call.place.cell, run.cell.number, *(caller.place.cell for caller in call.callers)}
    if call.same_input or loops > 1 or any(_SAMPLING.search(run.source_of(cell)) for cell in cells):
        return True
    return any(_REPEATED.search(text) for past in (*run.earlier, run) for text in _outside_of_classes(past.cell.source))


def _outside_of_classes(source: str) -> Iterator[str]:
    """The statements of a text; what a class does with its input is no question that is asked again."""
    tree = syntax.parse(source)
    for node in tree.body if tree is not None else ():
        if not isinstance(node, ast.ClassDef):
            yield ast.unparse(node)


def _of_part(run: Run, mode: ModeFact, names: list[str]) -> str:
    """`net.body.eval()` as it is written in a line; empty for the whole model, and for variables of a loop."""
    tree = syntax.parse(run.source_of(mode.place.cell))
    calls = (node for node in syntax.walk(tree) if isinstance(node, ast.Call)) if tree is not None else ()
    for node in calls:
        if node.lineno == mode.place.line and isinstance(node.func, ast.Attribute) and node.func.attr in _SLEEPS:
            owner = ast.unparse(node.func.value)
            if any(owner.startswith((f"{name}.", f"{name}[")) and "(" not in owner for name in names):
                return ast.unparse(node)
    return ""


def _reaches(text: str, part: str) -> bool:
    """True if a statement is about a part, or about something in it."""
    return text.startswith((f"{part}.", f"{part}["))


def _typed(part: str) -> str:
    """`.head`, `[2]`, `.net[2]`."""
    return "".join(f"[{one}]" if one.isdigit() else f".{one}" for one in part.split("."))
