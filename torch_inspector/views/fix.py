"""A fix as code that can be pasted, or as the sentence that it is."""

from __future__ import annotations

import re

from torch_inspector.facts import syntax
from torch_inspector.views.card import Code, Line, Part

# What has more letters than a panel has columns would be broken; its remark then stands below it.
_WIDE = 94
# Longer ones are cut, and what is cut is no code any more.
_LIMIT = 2_000
_MAGIC = re.compile(r"^%.*$", re.MULTILINE)
# A name that has lost its middle.
_CUT_NAME = re.compile(r"\w…\w")
_REMARK = re.compile(r"^# ?", re.MULTILINE)


def fix_parts(fix: str) -> list[Part]:
    """What to do about a finding, as code only where there is something to paste; empty if it says nothing."""
    if not fix.strip():
        return []
    code, _, remark = fix.partition("  # ") if _WIDE < len(fix) < _LIMIT and "\n" not in fix else (fix, "", "")
    if remark and _is_code(code):
        return [Code(code, caption="Fix"), Line(remark)]
    if _is_code(fix):
        return [Code(fix, caption="Fix")]
    return [Line(f"Fix: {fix_sentence(fix)}")]


def fix_sentence(fix: str) -> str:
    """The fix as one sentence; empty if it is code to paste, or nothing."""
    if not fix.strip() or _is_code(fix):
        return ""
    return " ".join(_REMARK.sub("", fix[: _LIMIT + 1]).split())


def _is_code(text: str) -> bool:
    """True for statements, also with an ellipsis in the place of what the user has; false for prose and remarks."""
    if _CUT_NAME.search(text):
        return False
    # An ellipsis stands for code, a magic is a statement, and the head of a block goes without it.
    code = _MAGIC.sub("pass", text[: _LIMIT + 1].replace("…", "..."))
    trees = (syntax.parse(code), syntax.parse(f"{code}\n    pass"))
    return any(tree is not None and tree.body for tree in trees)
