"""Frozen parts of a module that are named as a teacher is, with layers in train mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch_inspector.facts import TeacherFact
from torch_inspector.facts.teachers import is_named
from torch_inspector.observe import kinds, layers


def teachers_in(module: Any) -> tuple[TeacherFact, ...]:
    """Those among the direct parts of a module that have parameters, all of them frozen, and layers awake."""
    return tuple(_facts(module))


def _facts(module: Any) -> Iterator[TeacherFact]:
    for name, part in (kinds.fields_of(module).get("_modules") or {}).items():
        if part is None or not is_named(name) or kinds.fields_of(part).get("training") is not True:
            continue
        wanted = [p.requires_grad for _, p in layers.walk_parameters(part)]
        awake = layers.look_inside(part).awake
        if wanted and not any(wanted) and awake:
            yield TeacherFact(name, awake)
