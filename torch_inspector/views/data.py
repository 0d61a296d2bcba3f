"""A card as plain data, for JSON and `card.js`: one dictionary per part, with its kind and the names of its fields.

Fields that hold their default are left out: a notebook file keeps all of it, and most of them say nothing.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from torch_inspector.views.card import Part


def card_data(part: Part) -> dict[str, Any]:
    """The card or part; every text in it can be encoded in UTF-8."""
    held = ((field, getattr(part, field.name)) for field in fields(part))
    said = {field.name: _value(value) for field, value in held if value != field.default}
    return {"kind": part.kind, **said}


def _value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    return value if isinstance(value, (str, int)) else card_data(value)
