"""Other calls that are watched: loaders, caches, checkpoints, counts."""

from __future__ import annotations

from typing import NamedTuple

from torch_inspector.facts.place import Place


class GeneratorFact(NamedTuple):
    """A generator of random numbers that a data set draws from, and that workers copy."""

    path: str
    """The attribute: `rng`, `transform.rng`."""
    kind: str
    """`numpy.random.Generator`"""
    owner: str
    """Class whose attribute it is, or whose code draws from it."""
    is_global: bool = False
    """True for a variable of the notebook."""
    seeded_by: str = ""
    """For a source of numbers that the whole process has: the function that gives all workers one seed."""


class LoaderFact(NamedTuple):
    """One DataLoader that was iterated."""

    place: Place
    kind: str
    batch_size: int | None
    worker_count: int
    pin_memory: bool
    batch_count: int
    waited_s: float
    generators: tuple[GeneratorFact, ...] = ()
    """Of its data set, if it has several workers and none is prepared."""
    drained: bool = False
    """True if it came to its end although it drops what fills no batch; with `batch_count` 0 it dropped everything."""
    class_runs: tuple[tuple[int, int], ...] = ()
    """Classes with how many samples of each, if its first pass gave one class after the other, and none came back."""
    trained_count: int = 0
    """Batches of that pass after which an optimizer took a step."""
    failed: str = ""
    """Class of the exception with which it, or a worker of it, failed."""
    unsendable: tuple[str, ...] = ()
    """If it failed: classes and functions of the notebook that workers need which start empty."""
    class_batch: int = 0
    """Samples in a batch of the pass of `class_runs`, which a sampler of batches may have said."""
    part_runs: tuple[tuple[str | int, tuple[tuple[int, int], ...]], ...] = ()
    """As `class_runs`, of parts of the batches that may be targets or not: by their key or place in a batch."""
    pass_count: int = 1
    """How often it was begun."""
    known_as: str = ""
    """The notebook's own variable for it, whatever the function that goes through it calls it."""


class CountFact(NamedTuple):
    """How often one kind of call was made from one line."""

    kind: str
    """`backward`, `step`, `zero_grad`, `forward`, `scheduler`, `scaler.step`, `scaler.off` if that does not scale, …"""
    place: Place
    name: str
    """Class of what was called, where that says something."""
    count: int


class EmptiedFact(NamedTuple):
    """All calls of `empty_cache()` from one line."""

    place: Place
    name: str
    """`torch.cuda.empty_cache`"""
    count: int
    spent_s: float
    started: bool
    """True if the process uses an accelerator at all; without one the call does nothing."""


class CheckpointFact(NamedTuple):
    """All calls of `checkpoint()` in its old variant, told to use it or not, with one block from one line."""

    place: Place
    kind: str
    """Class of the block; empty for a function."""
    count: int
    fed: bool
    """True if a tensor argument wanted a gradient in one of the first calls: else no gradient can come back."""
    training: bool
    parameter_keys: frozenset[int]
    """Parameters of the block that want gradients, the first of them."""
