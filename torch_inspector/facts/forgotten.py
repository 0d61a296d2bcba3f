"""Whether a variable that no optimizer holds was forgotten, or is somebody's to change, or to leave as it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torch_inspector.facts.gradient_reads import collects_gradients, logs_gradients
from torch_inspector.facts.left_alone import is_written, left_alone

if TYPE_CHECKING:
    from torch_inspector.facts.optimizers import UnheldFact
    from torch_inspector.facts.run import Run

# Words of notebooks in which a part is left as it was loaded, or is fixed on purpose.
_ON_PURPOSE = re.compile(
    r"pretrain|load_state_dict|torch\.load|\bweights\s*=\s*['\x22A-Z]|hub\.load|load_from|from_checkpoint"
    r"|\bfreez|\bfrozen|\bfixed|\bprob(e|ing)\b|reservoir|random.feature",
    re.IGNORECASE,
)
_PLAIN, _GROWS = "Tensor", "add_param_group"


def is_plain(fact: UnheldFact) -> bool:
    """True for a tensor that no class says is to learn; it may have gradients for other reasons."""
    return fact.kind == _PLAIN and not fact.module


def is_on_purpose(run: Run, fact: UnheldFact) -> bool:
    """True if somebody may want the parameters to stay as they are, or has given them to an optimizer that is gone."""
    texts = [one.cell.source for one in (run, *run.earlier)]
    if fact.settled or not fact.training or any(_ON_PURPOSE.search(text) for text in texts):
        return True
    return run.after.optimizer(fact.optimizer) is None and any(_GROWS in text for text in texts)


def is_forgotten(run: Run, fact: UnheldFact) -> bool:
    """True of variables that are to learn, by all that the cells say, and that nothing in these changes."""
    if is_on_purpose(run, fact) or is_collected(run, fact):
        return False
    if is_plain(fact):
        return all(left_alone(run, name, fact.place) for name in fact.names)
    return not any(is_written(run, name) for name in fact.names)


def is_collected(run: Run, fact: UnheldFact) -> bool:
    """True if the texts make something of the gradients: masks are tried that nobody steps."""
    return any(collects_gradients(run, name, of_module=bool(fact.module)) for name in fact.names)


def is_watched(run: Run, fact: UnheldFact) -> bool:
    """True if the texts keep norms of the gradients, which says no more than that somebody looks at them."""
    return any(logs_gradients(run, name, of_module=bool(fact.module)) for name in fact.names)
