"""A run as a JSON message: what the sidebar, saved notebooks and other programs read.

The names of fields are a contract.
"""

from __future__ import annotations

import math
from typing import Any

from torch_inspector.facts import Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.outcome import Change, Fate
from torch_inspector.views.card import Card
from torch_inspector.views.data import card_data
from torch_inspector.views.explain import Drawing, in_order
from torch_inspector.views.plain import block, one_line
from torch_inspector.views.quantity import Number
from torch_inspector.views.rerun import fate_of, status_of

RUN_MIME = "application/vnd.torch-inspector.run+json"
VERSION = 1
"""Raised when a field is renamed, removed or changes its meaning; new fields do not raise it."""

# Bounds of what a notebook file has to keep; `finding_count` tells of the rest.
_FINDING_COUNT = 50
_EVIDENCE_COUNT = 20
_NAME_LIMIT = 200
_MESSAGE_LIMIT = 1_000
_CODE_LIMIT = 2_000
_TEXT_LIMIT = 20_000
# Beyond this, JavaScript rounds whole numbers.
_LARGEST_INT = 2**53


def run_message(
    run: Run,
    *,
    session: str,
    model_id: str | None = None,
    card: Card | None = None,
    drawing: Drawing | None = None,
) -> dict[str, Any]:
    """The run's findings and, if given, its card as plain data.

    Args:
        run: With findings that a session has stamped.
        session: Identifies the kernel session that made the run.
        model_id: Of the live widget that shows the same card, if there is one.
        card: What a front end should draw.
        drawing: What the card was drawn with; without it, reasons and what became of the last findings stay empty.
    """
    drawing = drawing or Drawing(run, {})
    fixed, gone = (drawing.outcome.fixed, drawing.outcome.gone) if drawing.outcome is not None else ((), ())
    # The k-th of them is the k-th that the card can open.
    found = in_order(run.findings, drawing.known)[:_FINDING_COUNT]
    message = {
        "version": VERSION,
        "session": session,
        "cell": run.cell.number,
        "duration_s": round(run.duration_s, 6),
        "findings": [{**_finding(finding, run), **_status(finding, drawing)} for finding in found],
        "finding_count": len(run.findings),
        "fixed": [_fate(fate) for fate in fixed[:_FINDING_COUNT]],
        "gone": [_fate(fate) for fate in gone[:_FINDING_COUNT]],
        "model_id": model_id,
        "card": card_data(card) if card else None,
    }
    return {name: encodable(value) for name, value in message.items()}


def encodable(value: Any) -> Any:
    """The value in a form that every JSON reader takes.

    Texts are cut and can be encoded in UTF-8; nan, infinities and whole numbers that JavaScript would round become
    strings; what JSON does not know becomes its type's name.
    """
    if isinstance(value, dict):
        return {block(str(name), _NAME_LIMIT): encodable(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encodable(item) for item in value]
    if isinstance(value, str):
        return block(value, _TEXT_LIMIT, _TEXT_LIMIT)
    if isinstance(value, (int, float)):
        return _number(value)
    return None if value is None else type(value).__name__


def _finding(finding: Finding, run: Run) -> dict[str, Any]:
    return {
        "slug": one_line(finding.slug, _NAME_LIMIT),
        "severity": finding.severity or "hint",
        "cell": run.cell.number if finding.cell is None else finding.cell,
        "line": finding.line,
        "subject": one_line(finding.subject, _NAME_LIMIT),
        "message": one_line(finding.message, _MESSAGE_LIMIT),
        "fix": block(finding.fix, _CODE_LIMIT),
        "code": block(finding.code, _CODE_LIMIT),
        "evidence": [_evidence(evidence) for evidence in finding.evidence[:_EVIDENCE_COUNT]],
    }


def _status(finding: Finding, drawing: Drawing) -> dict[str, Any]:
    """What became of it since the last run; the lines around it and the reason are in the card."""
    fate = fate_of(finding, drawing.outcome)
    return {
        "status": status_of(finding, drawing.outcome),
        "change": _change(fate.change) if fate is not None else None,
    }


def _fate(fate: Fate) -> dict[str, Any]:
    finding = fate.finding
    return {
        "slug": one_line(finding.slug, _NAME_LIMIT),
        "subject": one_line(finding.subject, _NAME_LIMIT),
        "change": _change(fate.change),
    }


def _change(change: Change | None) -> dict[str, Any] | None:
    if change is None:
        return None
    label, unit = (one_line(text, _NAME_LIMIT) for text in (change.label, change.unit))
    return {"label": label, "before": change.before, "after": change.after, "unit": unit}


def _evidence(evidence: Evidence) -> dict[str, Any]:
    value = evidence.value
    return {
        "label": one_line(evidence.label, _NAME_LIMIT),
        "value": one_line(value, _NAME_LIMIT) if isinstance(value, str) else value,
        "unit": one_line(evidence.unit, _NAME_LIMIT),
    }


def _number(value: Number) -> Number | str:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if -_LARGEST_INT <= value <= _LARGEST_INT:
        return value
    # Python refuses to print whole numbers of more than 4,300 digits.
    return hex(value) if value.bit_length() > _NAME_LIMIT else str(value)
