"""Plain tensor attributes behind a refusal of torch to mix types of numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch_inspector.facts.errors import ErrorFact
    from torch_inspector.facts.modules import AttributeFact, UnsavedFact
    from torch_inspector.facts.run import Run


def plain_attribute(run: Run, text: str, dtypes: Iterable[str]) -> AttributeFact | None:
    """The only plain attribute of one of some types that an expression of a module's code leads to.

    Args:
        run: The run that failed.
        text: What failed, or what gave the variable at fault its value: `self.mix(self.pos(x))`.
        dtypes: Types that the rest does not have.
    """
    facts = [one for past in (*run.earlier, run) for one in past.after.attributes]
    latest = {(one.kind, one.name, one.element): one for one in facts}
    wanted = tuple(dtypes)
    found = [one for one in latest.values() if one.dtype in wanted and not one.moved and _is_in(one, text)]
    return found[0] if len(found) == 1 else None


def unconverted(run: Run, error: ErrorFact) -> AttributeFact | None:
    """The plain attribute that a failing expression names, where the weights and the other operands have one type."""
    facts = [one for past in (*run.earlier, run) for one in past.after.attributes]
    latest = {(one.kind, one.name): one for one in facts if not one.element}
    tensors = {one.path: one.dtype for one in error.operands if one.kind == "tensor"}
    found = [
        one
        for one in latest.values()
        if tensors.get(f"self.{one.name}") == one.dtype and not one.moved and _is_in(one, error.expression)
        if len(one.owner_dtypes) == 1 and one.dtype not in one.owner_dtypes
        if {type_ for path, type_ in tensors.items() if path != f"self.{one.name}"} == {*one.owner_dtypes}
    ]
    return found[0] if len(found) == 1 else None


def _is_in(one: AttributeFact, text: str) -> bool:
    """True if a text reads the attribute, or calls the module that has it."""
    holder = one.path.removesuffix(one.element).rpartition(".")[0].rpartition(".")
    read = rf"\bself\.{re.escape(one.name)}\b(?!\.(to|type_as|half|float|double|bfloat16)\()"
    called = rf"\bself\.{re.escape(holder[2])}\(" if holder[0] else r"(?!)"
    return bool(re.search(rf"{read}|{called}", text))


def registered(one: AttributeFact | UnsavedFact, source: str) -> str:
    """The line that makes a buffer of an attribute; `source` is the cell that sets it."""
    lines = source.splitlines()
    line = lines[one.place.line - 1] if one.place.line is not None and one.place.line <= len(lines) else ""
    given = re.fullmatch(rf"\s*(?P<own>\w+)\.{re.escape(one.name)} = (?P<value>[^#]*?)\s*(#.*)?", line)
    value = given["value"] if given is not None and given["value"].count("(") == given["value"].count(")") else "..."
    where = f"in {getattr(one, 'method', '__init__')} of {one.kind}"
    own = given["own"] if given is not None else "self"
    return f'{own}.register_buffer("{one.name}", {value})  # {where}, in place of {own}.{one.name} = ...'
