"""Pairs of short blocks with and without the extension, and what the pairs say. Knows nothing of shells or torch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter, process_time
from typing import Any, NamedTuple


class Times(NamedTuple):
    """How long one block took on two clocks."""

    cpu_s: float
    """Processor time of this process: other programs on the machine do not count."""
    wall_s: float


class Pair(NamedTuple):
    """Two blocks that ran one right after the other."""

    without: Times
    with_it: Times


@dataclass(frozen=True)
class Spread:
    """Median of a sample, with its quartiles and the interval that holds the true median in 95 of 100 cases."""

    median: float
    quartiles: tuple[float, float]
    interval: tuple[float, float]
    count: int


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Args:
        benchmark: Its name on the command line.
        what: What was measured.
        unit: `ratio` (with ÷ without, no unit) or `ms`.
        cpu: The sample in processor time, which is what is judged.
        wall: The same in wall time.
        allowed: The largest median that is good, in the same unit; None where no bound was agreed.
        undisturbed: The same of the first quartiles of both sides instead of the pairs: a burst of other work on the
            machine spoils the slower blocks of either side. None where there are no two sides.
    """

    benchmark: str
    what: str
    unit: str
    cpu: Spread
    wall: Spread
    allowed: float | None = None
    undisturbed: float | None = None

    @property
    def verdict(self) -> str:
        """`ok`, `over`, or `unclear` where the noise is wider than the distance to the bound."""
        if self.allowed is None:
            return ""
        low, high = self.cpu.interval
        return "ok" if high <= self.allowed else "over" if low > self.allowed else "unclear"

    def as_data(self) -> dict[str, Any]:
        """The row for `--json`: medians, quartiles and intervals in the row's unit."""
        return asdict(self) | {"verdict": self.verdict}


def clocked(action: Callable[[], object]) -> Times:
    """Times in seconds of one call."""
    wall_s, cpu_s = perf_counter(), process_time()
    action()
    return Times(process_time() - cpu_s, perf_counter() - wall_s)


def paired(block: Callable[[bool], Times], count: int, *, warm_up: int = 3) -> list[Pair]:
    """Runs pairs of blocks; which one comes first alternates, so that a machine that slows down favours neither.

    Args:
        block: Runs one block, with the extension if given True.
        count: Number of pairs kept.
        warm_up: Number of pairs run before and thrown away.
    """
    for _ in range(warm_up):
        block(False)
        block(True)
    pairs = []
    for turn in range(count):
        times = {with_it: block(with_it) for with_it in ((False, True) if turn % 2 else (True, False))}
        pairs.append(Pair(times[False], times[True]))
    return pairs


def spread(sample: Sequence[float]) -> Spread:
    """Median, quartiles and interval, in the unit of the sample. The interval is that of the sign test."""
    ordered, count = sorted(sample), len(sample)
    first, median, third = statistics.quantiles(ordered, n=4, method="inclusive")
    reach = 1.96 * math.sqrt(count) / 2
    low, high = math.floor(count / 2 - reach), math.ceil(count / 2 + reach)
    return Spread(median, (first, third), (ordered[max(low, 0)], ordered[min(high, count - 1)]), count)


def ratio_row(benchmark: str, what: str, pairs: Sequence[Pair], allowed: float | None = None) -> Row:
    """How many times as long the block takes with the extension; no unit."""
    cpu = spread([pair.with_it.cpu_s / pair.without.cpu_s for pair in pairs])
    wall = spread([pair.with_it.wall_s / pair.without.wall_s for pair in pairs])
    without, with_it = _quick(pairs)
    return Row(benchmark, what, "ratio", cpu, wall, allowed, with_it / without)


def extra_row(benchmark: str, what: str, pairs: Sequence[Pair], allowed: float | None = None) -> Row:
    """How many milliseconds more the block takes with the extension."""
    cpu = spread([1e3 * (pair.with_it.cpu_s - pair.without.cpu_s) for pair in pairs])
    wall = spread([1e3 * (pair.with_it.wall_s - pair.without.wall_s) for pair in pairs])
    without, with_it = _quick(pairs)
    return Row(benchmark, what, "ms", cpu, wall, allowed, 1e3 * (with_it - without))


def _quick(pairs: Sequence[Pair]) -> tuple[float, float]:
    """First quartiles, in seconds of processor time, of the blocks without and with the extension."""
    sides = [[pair.without.cpu_s for pair in pairs], [pair.with_it.cpu_s for pair in pairs]]
    without, with_it = (statistics.quantiles(side, n=4, method="inclusive")[0] for side in sides)
    return without, with_it


def time_row(benchmark: str, what: str, times: Sequence[Times], allowed: float | None = None) -> Row:
    """Milliseconds that something takes by itself."""
    cpu, wall = spread([1e3 * one.cpu_s for one in times]), spread([1e3 * one.wall_s for one in times])
    return Row(benchmark, what, "ms", cpu, wall, allowed)
