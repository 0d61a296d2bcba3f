"""Samples of a whole session in bounded space: the older half loses every second one when there are too many."""

from __future__ import annotations

from torch_inspector.notebook.feed.sample import Sample

# About half an hour of one running cell in full; 5 million bytes of history would take seconds to send.
MOST = 4000


class Timeline:
    """Samples in order. What is thinned out keeps the highest of each pair, so that peaks stay to be seen."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self.samples: list[Sample] = []

    def add(self, sample: Sample) -> None:
        """One more."""
        self.samples.append(sample)
        self._thin()

    def limit(self, most: int) -> None:
        """So many are kept from now on."""
        self._most = most
        self._thin()

    def latest(self, most: int) -> list[Sample]:
        """All of it in few samples."""
        samples = self.samples
        while len(samples) > most:
            samples = thinned(samples)
        return samples

    def _thin(self) -> None:
        while len(self.samples) > self._most:
            half = len(self.samples) // 2
            self.samples[:half] = thinned(self.samples[:half])


def thinned(samples: list[Sample]) -> list[Sample]:
    """Half as many."""
    pairs = [samples[i : i + 2] for i in range(0, len(samples), 2)]
    return [max(pair, key=_weight)._replace(gap=any(one.gap for one in pair)) for pair in pairs]


def _weight(sample: Sample) -> int:
    return sum(fact.allocated_nbytes for fact in sample.memory)
