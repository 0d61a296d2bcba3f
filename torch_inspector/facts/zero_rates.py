"""Schedules that keep a learning rate at 0, and what to do about them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torch_inspector.facts.place import Place
from torch_inspector.facts.rate_functions import rate_function

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run
    from torch_inspector.facts.schedules import ScheduleFact

# Calls: a schedule may begin at 0.
_CALLS = 3


def zeroing(run: Run, key: int) -> ScheduleFact | None:
    """The schedule of an optimizer that has set the rate to 0 at each call that was looked at, if there is one."""
    mine = [one for one in run.trace.schedules if one.optimizer == key and one.rates]
    found = [one for one in mine if one.count >= _CALLS and all(rate == 0 for calls, rate in one.rates if calls)]
    return found[0] if len(mine) == len(found) == 1 else None


def set_to_zero(run: Run, key: int) -> tuple[str, str] | None:
    """Reason and fix of a rate that a schedule sets to 0 at each call: another would be gone after the next step."""
    schedule = zeroing(run, key)
    if schedule is None:
        return None
    name = schedule.path or schedule.name or schedule.kind
    reason = (
        f"the schedule `{name}` ({schedule.kind}) sets its learning rate `lr` to 0 at each of {schedule.count} calls"
    )
    sources = [(one.cell.number, one.cell.source) for one in (run, *reversed(run.earlier))]
    function = rate_function(sources) if schedule.kind == "LambdaLR" else None
    begun = schedule.schedule in {one.schedule for past in run.earlier for one in past.trace.schedules}
    if function is None and not begun and schedule.first_rate == 0:
        reason = f"the learning rate `lr` was 0 already when the schedule `{name}` ({schedule.kind}) was made"
        optimizer = run.optimizer_path(key) or "optimizer"
        return reason, (
            f'for group in {optimizer}.param_groups:\n    group["lr"] = group["initial_lr"]  # before `{name}` is made'
        )
    if function is None or (begun and not function.text):
        return reason, f"make `{name}` anew so that it lasts longer, or do without it: it has come to its end"
    called = f"`{function.name}()`" if function.name else "its lambda"
    where = Place(function.cell, function.line).said_in(run.cell.number)
    if function.text:
        reason = f"{reason}, for `{function.text}` ({where}) gives whole numbers, 0 at first"
        return reason, f"{function.mended}  # in place of {function.text}, {where}"
    more = f"max(0.01, {function.whole})  # in place of {function.whole}, {where}"
    return f"{reason}, for {called} gives 0", more if function.whole else f"let {called} ({where}) give more than 0"


def schedule_of(run: Run, name: str) -> str:
    """The one variable that a cell gives a schedule of this optimizer; empty if there is none or several."""
    given = rf"\(\s*(?:optimizer\s*=\s*)?{re.escape(name)}\b"
    made = re.compile(rf"^([\w.]+)\s*=\s*[\w.]*(?:LR|[Ss]chedule\w*|Restarts){given}", re.MULTILINE)
    found = {match[1] for one in (run, *run.earlier) for match in made.finditer(one.cell.source)}
    return found.pop() if len(found) == 1 else ""
