"""Draws whose log-probability the loss takes: they are how it is meant, and cut nothing off."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from torch_inspector.facts import CutFact, syntax


def is_scored(node: ast.expr) -> bool:
    """True if an expression takes the log-probability of something: `dist.log_prob(action)`."""
    return any(isinstance(one, ast.Attribute) and one.attr == "log_prob" for one in syntax.walk(node))


def past_draws(cuts: Iterable[CutFact]) -> list[CutFact]:
    """The cuts behind a loss of log-probabilities without the draws, where any other is left that has a source."""
    every = list(cuts)
    others = [one for one in every if one.kind != "drawn"]
    return others if any(any(one.sources) for one in others) else every
