"""The style sheet as a card carries it: the rules that its own HTML uses, without the blanks that only people need."""

from __future__ import annotations

import re
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parent / "static" / "style.css"
# Blanks around signs that end what stands before them; the one before a colon or a parenthesis can have a meaning.
_LOOSE = re.compile(r" ?([{};>]) ?|(?<=[:,]) ")
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
# Of `:is(th, td)` any will do, and other pseudo-classes say nothing about tags.
_PSEUDO = re.compile(r":[\w-]+(?:\([^)]*\))?")
_NAME = re.compile(r"\.[\w-]+|(?<![\w.-])[a-z]+")
_TAG = re.compile(r"<([a-z]+)")
_CLASS = re.compile(r'class="([^"]*)')
_BETWEEN = re.compile(r",(?![^(]*\))")


class Rule(NamedTuple):
    """One selector with what it declares."""

    selector: str
    body: str
    names: frozenset[str]
    """Tags and `.classes` without which it says nothing."""


def style_for(html: str) -> str:
    """The rules that some element of `html` may meet."""
    there = set(_TAG.findall(html)) | {f".{name}" for text in _CLASS.findall(html) for name in text.split()}
    used = groupby((rule for rule in _rules() if rule.names <= there), lambda rule: rule.body)
    return "".join(f"{','.join(rule.selector for rule in rules)}{{{body}}}" for body, rules in used)


@cache
def _rules() -> tuple[Rule, ...]:
    text = _LOOSE.sub(r"\1", " ".join(FILE.read_text(encoding="utf-8").split())).replace(";}", "}")
    return tuple(
        Rule(selector, body, frozenset(_NAME.findall(_PSEUDO.sub("", selector))))
        for selectors, body in _RULE.findall(text)
        for selector in _BETWEEN.split(selectors)
    )
