"""Training loops, watched and not: the same net, optimizer and data in one process, cell by cell in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.allocator import keep_freed_memory
from benchmarks.notebook import Notebook, a_notebook
from benchmarks.timing import Row, Times, paired, ratio_row

_STEP = """
for step in range({steps}):
    optimizer.zero_grad()
    loss = criterion(net(x), y)
    loss.backward()
    optimizer.step()
"""
_EPOCHS = """
for epoch in range({steps} // 100):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
"""
# How long a step of each takes is measured, and stands in the row.
_SMALL = """
net = nn.Sequential(nn.Linear(20, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 10))
x, y = torch.randn(48, 20), torch.randint(0, 10, (48,))
"""
# Few weights and many rows: what other programs do to the memory bus matters less.
_LARGE = """
net = nn.Sequential(*[layer for _ in range(3) for layer in (nn.Linear(256, 256), nn.ReLU())], nn.Linear(256, 10))
x, y = torch.randn(896, 256), torch.randint(0, 10, (896,))
"""
_DEEP = """
net = nn.Sequential(*[layer for _ in range(15) for layer in (nn.Linear(32, 32), nn.ReLU())])
x, y = torch.randn(32, 32), torch.randint(0, 10, (32,))
"""
_ADAM = "criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.Adam(net.parameters(), lr=1e-3)"
_SGD = "criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=1e-3)"
_LOADER = """
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.randn(3200, 20), torch.randint(0, 10, (3200,))), batch_size=32, shuffle=True)
"""


# Steps of the cell before each that is timed; a multiple of the length of an epoch.
_FIRST_STEPS = 100


@dataclass(frozen=True)
class _Load:
    """One loop: what the table calls it, the cell that makes its names, the cell that is timed, and how often."""

    what: str
    setup: str
    cell: str
    steps: int
    pairs: int
    allowed: float | None


_LOADS = (
    _Load("small MLP, 2,000 steps", _SMALL + _ADAM, _STEP, 2_000, 40, 1.03),
    _Load("small MLP, 200 steps", _SMALL + _ADAM, _STEP, 200, 60, None),
    _Load("with a DataLoader, 500 steps", _SMALL + _ADAM + _LOADER, _EPOCHS, 500, 30, 1.03),
    _Load("30 modules, 500 steps", _DEEP + _SGD, _STEP, 500, 24, 1.03),
    _Load("large MLP, 100 steps", _LARGE + _SGD, _STEP, 100, 40, 1.01),
)


def run() -> Iterator[Row]:
    """Ratios of the times of whole cells, and how far from 1 a ratio is when nothing differs."""
    keep_freed_memory()
    for load in _LOADS:
        with a_notebook() as notebook:
            notebook.run(load.setup)
            yield _measure(notebook, load)
    with a_notebook() as notebook:
        notebook.run(_LOADS[0].setup)
        yield _noise(notebook, _LOADS[0])


def _measure(notebook: Notebook, load: _Load) -> Row:
    code, first = load.cell.format(steps=load.steps), load.cell.format(steps=_FIRST_STEPS)
    pairs = paired(lambda watched: notebook.time(code, watched=watched, first=first), load.pairs)
    step_us = 1e6 * sorted(pair.without.wall_s for pair in pairs)[len(pairs) // 2] / load.steps
    return ratio_row("loop", f"{load.what} of {step_us:.0f} µs", pairs, load.allowed)


def _noise(notebook: Notebook, load: _Load) -> Row:
    """The same loop against itself, never watched."""
    code = load.cell.format(steps=load.steps)

    def unwatched(_: bool) -> Times:
        return notebook.time(code, watched=False)

    return ratio_row("loop", f"noise: {load.what}, off against off", paired(unwatched, 16))
