"""Hooks of ours that do not count: the user's own handles have the numbers that they would have without us."""

from __future__ import annotations

from typing import Any

from torch.utils.hooks import RemovableHandle


def uncounted(handle: Any) -> Any:
    """Gives the number of the latest handle back, and keeps its hook under one that no other handle gets.

    Args:
        handle: What torch has just returned for a hook. It removes the hook as before.
    """
    hooks, number = handle.hooks_dict_ref(), handle.id
    if getattr(RemovableHandle, "next_id", None) == number + 1 and number in hooks:
        handle.id = -1 - id(handle)
        hooks[handle.id] = hooks.pop(number)
        RemovableHandle.next_id = number
    return handle
