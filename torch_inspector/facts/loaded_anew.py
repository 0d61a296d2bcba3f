"""How the state of an optimizer is made to fit the weights of now."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_inspector.facts.errors import StaleStateFact


def loaded_anew(state: StaleStateFact, why: str) -> str:
    """The line that does it; in words where nobody knows what the optimizer is called."""
    if not state.path:
        return f"# call load_state_dict() of that {state.kind} with its own state_dict(): {why}"
    return f"{state.path}.load_state_dict({state.path}.state_dict())  # {why}"
