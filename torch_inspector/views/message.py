"""A run as a JSON message: what the sidebar, saved notebooks and other programs read.

The names of fields are a contract.
"""

from __future__ import annotations

import math
from typing import Any

from torch_inspector.facts import Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.views.card import Card
from torch_inspector.views.data import card_data
from torch_inspector.views.plain import block, one_line
from torch_inspector.views.quantity import Number

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


def run_message(run: Run, *, session: str, model_id: str | None = None, card: Card | None = None) -> dict[str, Any]:
    """The run's findings and, if given, its card as plain data.

    Args:
        run: With findings that a session has stamped.
        session: Identifies the kernel session that made the run.
        model_id: Of the live widget that shows the same card, if there is one.
        card: What a front end should draw.
    """
    message = {
        "version": VERSION,
        "session": session,
        "cell": run.cell.number,
        "duration_s": run.duration_s,
        "findings": [_finding(finding, run) for finding in run.findings[:_FINDING_COUNT]],
        "finding_count": len(run.findings),
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
    if isinstance(value, list | tuple):
        return [encodable(item) for item in value]
    if isinstance(value, str):
        return block(value, _TEXT_LIMIT, _TEXT_LIMIT)
    if isinstance(value, int | float):
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
