"""The style sheet as a card carries it: the rules that its own HTML uses, without the blanks that only people need."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parent / "static" / "style.css"
# Blanks around signs that end what stands before them; the one before a colon or a parenthesis can have a meaning.
_LOOSE = re.compile(r" ?([{};>]) ?|(?<=[:,]) ")
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_CONTAINER = re.compile(r"(@container[^{]+)\{((?:[^{}]+\{[^{}]*\})*)\}")
# Of `:is(th, td)` any will do, and other pseudo-classes say nothing about tags.
_PSEUDO = re.compile(r":[\w-]+(?:\([^)]*\))?")
_NAME = re.compile(r"\.[\w-]+|(?<![\w.-])[a-z]+")
_TAG = re.compile(r"<([a-z]+)")
_CLASS = re.compile(r'class="([^"]*)')
_BETWEEN = re.compile(r",(?![^(]*\))")
# In front ends, HTML stands among rules for all tables, paragraphs and code, which differ from version to version. An
# identifier that no card has weighs more than any number of their classes.
_HEAD = ".ti-card "
_HEAVY = ".ti-card:not(#_) "


class Rule(NamedTuple):
    """One selector with what it declares."""

    selector: str
    body: str
    names: frozenset[str]
    """Tags and `.classes` without which it says nothing."""


def style_for(html: str) -> str:
    """The rules that some element of `html` may meet."""
    there = set(_TAG.findall(html)) | {f".{name}" for text in _CLASS.findall(html) for name in text.split()}
    wide, narrow = _sheet()
    inside = ((head, _drawn(rules, there)) for head, rules in narrow)
    return _drawn(wide, there) + "".join(f"{head}{{{drawn}}}" for head, drawn in inside if drawn)


def _drawn(rules: Iterable[Rule], there: set[str]) -> str:
    used = groupby((rule for rule in rules if rule.names <= there), lambda rule: rule.body)
    return "".join(f"{','.join(rule.selector for rule in alike)}{{{body}}}" for body, alike in used)


@cache
def _sheet() -> tuple[tuple[Rule, ...], tuple[tuple[str, tuple[Rule, ...]], ...]]:
    """The rules; then what holds for narrow panels, which comes last: each head with the rules in it."""
    text = _LOOSE.sub(r"\1", " ".join(FILE.read_text(encoding="utf-8").split())).replace(";}", "}")
    narrow = tuple((head, _rules(inside)) for head, inside in _CONTAINER.findall(text))
    return _rules(_CONTAINER.sub("", text)), narrow


def _rules(text: str) -> tuple[Rule, ...]:
    return tuple(
        Rule(selector.replace(_HEAD, _HEAVY), body, frozenset(_NAME.findall(_PSEUDO.sub("", selector))))
        for selectors, body in _RULE.findall(text)
        for selector in _BETWEEN.split(selectors)
    )
