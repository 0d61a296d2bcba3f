"""A checkpoint from a device that this machine does not have, loaded without `map_location`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_REFUSED = re.compile(r"Attempting to deserialize object on (?:an? )?(\w+)(?: device)?(?: (\d+))?")
_KINDS = ("RuntimeError", "UnpicklingError")


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds loads that failed because the tensors in the file belong on a device that is not there."""
    error = run.error
    told = _REFUSED.search(error.message) if error is not None and error.kind in _KINDS else None
    if error is None or told is None:
        return
    device = told[1] + (f" device {told[2]}" if told[2] else "")
    where = f"`{error.expression}`" if error.expression else "torch.load"
    yield Finding(
        message=f"{where} puts each tensor where it was when it was saved, on {device}, which is not here.",
        subject=error.expression,
        fix=_fix(error),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence("saved on", device),),
    )


def _fix(error: ErrorFact) -> str:
    text = error.expression
    if text.endswith(")") and "load(" in text and "map_location" not in text:
        return f'{text[:-1]}, map_location="cpu")  # then model.to(device)'
    return 'torch.load(path, map_location="cpu")  # then model.to(device)'
