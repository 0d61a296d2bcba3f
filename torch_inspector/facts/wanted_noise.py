"""Names for the noise of train mode, or for fresh statistics, in what asks a model: who writes them wants it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.adapting import adapts
from torch_inspector.facts.wordless import remark_at, without_words

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
    """True if the code around the modes and the calls says what train mode is for.

    Code does, by its names and by what it handles; comments and texts do not, which speak of samples and statistics of
    all kinds. Only the remark at the line itself that sets the mode is one about it.
    """
    if call.only_norms and _ADAPTS.search(awake.place.function):
        return True
    if adapts(call, awake, run) or _WANTED.search(remark_at(run.source_of(awake.place.cell), awake.place.line)):
        return True
    if not awake.place.function:
        return _WANTED.search(without_words(run.source_of(awake.place.cell))) is not None
    places = awake.place, call.place, *(caller.place for caller in call.callers)
    return any(_WANTED.search(_around(run, place)) for place in places)


def _around(run: Run, place: Place) -> str:
    """The function that a line stands in, or the statement, with the heads of loops and of the class around it."""
    source = run.source_of(place.cell)
    tree, code = syntax.parse(source), without_words(source)
    if tree is None or place.line is None:
        return code
    line = place.line
    statements = (one for one in syntax.walk(tree) if isinstance(one, ast.stmt))
    around = [one for one in statements if one.lineno <= line <= (one.end_lineno or one.lineno)]
    inner = max(around, key=lambda one: one.lineno, default=None)
    whole = syntax.function_around(tree, line) or inner
    lines = code.splitlines()
    heads = [lines[one.lineno - 1] for one in around]
    return "\n".join((*heads, *(lines[whole.lineno - 1 : whole.end_lineno] if whole is not None else lines)))
