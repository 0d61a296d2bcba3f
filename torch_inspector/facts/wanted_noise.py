"""Words for the noise of train mode, or for fresh statistics, in what asks a model: who writes them wants it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.forwards import ForwardFact, ModeFact
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

_WANTED = re.compile(
    r"monte|\bmc\b|\bmc_|_mc\b|mc.?dropout|dropout.{0,12}\bon\b|uncertain|bayes|\bsampl(e|es|ing)\b|statistic|calibrat"
    r"|running_(stats|mean|var)|batch.?stats|\.momentum\s*=[^=]|on purpose",
    re.IGNORECASE,
)
# Functions whose predictions are to use the statistics of what is asked.
_ADAPTS = re.compile(r"batch_?norm|(^|_)bn(_|$)|adapt|recalibrat|test_?time|(^|_)(tta|ttbn|tent)(_|$)", re.IGNORECASE)


def is_noise_named(call: ForwardFact, awake: ModeFact, run: Run) -> bool:
    """True if the text around the modes and the calls says what train mode is for.

    Of the cell that sets it, code of other functions says nothing of these: only its comments and texts do.
    """
    if call.only_norms and _ADAPTS.search(awake.place.function):
        return True
    source = run.source_of(awake.place.cell)
    if not awake.place.function:
        return _WANTED.search(source) is not None
    places = awake.place, call.place, *(caller.place for caller in call.callers)
    return any(_WANTED.search(text) for text in (_remarks(source), *(_around(run, place) for place in places)))


def _remarks(source: str) -> str:
    """Comments and texts of a cell."""
    tree = syntax.parse(source)
    nodes = syntax.walk(tree) if tree is not None else ()
    texts = [one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return "\n".join((*(line.partition("#")[2] for line in source.splitlines()), *texts))


def _around(run: Run, place: Place) -> str:
    """The function that a line stands in, or the statement, with the heads of loops and of the class around it."""
    source = run.source_of(place.cell)
    tree = syntax.parse(source)
    if tree is None or place.line is None:
        return source
    line = place.line
    statements = (one for one in syntax.walk(tree) if isinstance(one, ast.stmt))
    around = [one for one in statements if one.lineno <= line <= (one.end_lineno or one.lineno)]
    inner = max(around, key=lambda one: one.lineno, default=None)
    whole = syntax.function_around(tree, line) or inner
    lines = source.splitlines()
    heads = [lines[one.lineno - 1] for one in around]
    return "\n".join((*heads, *(lines[whole.lineno - 1 : whole.end_lineno] if whole is not None else lines)))
