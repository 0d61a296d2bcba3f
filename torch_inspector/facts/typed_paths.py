"""Paths as they are typed, `trainer.history['loss'][3]`, taken apart into steps that need no code to be run."""

from __future__ import annotations

import re

_NUMBER = r"-?\d{1,60}(?:\.\d{1,60})?(?:e[-+]?\d{1,3})?"
_TEXT = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_NAME = r"[^\W\d]\w*"
_STEP = re.compile(rf"\.{_NAME}|\[(?:{_NUMBER}|{_TEXT}|True|False|None)\]")
_ROOT = re.compile(_NAME)


def steps_of(path: str) -> tuple[str, ...] | None:
    """The variable, then each step as it is typed: `.name` or `[key]`; None for a path of any other form."""
    root = _ROOT.match(path)
    if root is None:
        return None
    steps, end = [root[0]], root.end()
    while end < len(path):
        step = _STEP.match(path, end)
        if step is None:
            return None
        steps.append(step[0])
        end = step.end()
    return tuple(steps)
