"""Models that are named as a teacher is, with layers in train mode: a called one, or frozen parts of a called one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch_inspector.facts import TeacherFact
from torch_inspector.facts.teachers import is_named
from torch_inspector.observe import as_torch, kinds, layers
from torch_inspector.observe.sampled import some_values
from torch_inspector.observe.versions import version_of

# Parameters of a teacher of which a change is noticed.
_MARKED = 4


def teachers_in(module: Any, name: str) -> tuple[TeacherFact, ...]:
    """The module itself if the code gives it such a name; else those among its parts whose parameters are frozen."""
    own = [TeacherFact("", layers.look_inside(module).awake, _mark(module))] if is_named(name) else []
    return tuple(one for one in own or _parts(module) if one.awake)


def looked_again(known: tuple[TeacherFact, ...], module: Any) -> tuple[TeacherFact, ...]:
    """The same at a later moment: without those that sleep by now, with a note of those whose weights have changed."""
    now = ((one, module if not one.path else layers.part_of(module, one.path)) for one in known)
    awake = ((one, part) for one, part in now if part is not None and layers.look_inside(part).awake)
    return tuple(one._replace(moved=one.moved or _mark(part) != one.mark) for one, part in awake)


def _parts(module: Any) -> Iterator[TeacherFact]:
    for name, part in (kinds.fields_of(module).get("_modules") or {}).items():
        if part is None or not is_named(name) or kinds.fields_of(part).get("training") is not True:
            continue
        wanted = [as_torch.requires_grad(p) for _, p in layers.walk_parameters(part)]
        if wanted and not any(wanted):
            yield TeacherFact(name, layers.look_inside(part).awake, _mark(part))


def _mark(module: Any) -> tuple[tuple[float, ...], ...]:
    """Of some parameters how often they were changed in place, and some values: `.data` counts no changes."""
    first = [p for _, p in layers.walk_parameters(module)][:_MARKED]
    return tuple((float(version_of(p)), *(some_values(p) or ())) for p in first)
