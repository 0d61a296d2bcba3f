"""The smallest cell, `x = 1`, in notebooks that hold much: what looking at the user's variables adds."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.notebook import Notebook, a_notebook
from benchmarks.timing import Row, extra_row, paired

_PAIRS = 40
# Three long containers; each element is two objects of the collector: a dict, a list or an instance, and a list in it.
_WIDE = """
class Thing:
    def __init__(self, number):
        self.number, self.tags = number, [number]

size = {objects} // 6
records = [{{"number": number, "tags": [number]}} for number in range(size)]
table = [[number, [number]] for number in range(size)]
things = {{number: Thing(number) for number in range(size)}}
"""
# The same number in a cube, so that no container is longer than the extension looks.
_CUBE = """
side = round({objects} ** (1 / 3))
cube = [[[[i, j, k] for i in range(side)] for j in range(side)] for k in range(side)]
"""
_TORCH = """
nets = [nn.Sequential(*[nn.Linear(32, 32) for _ in range(10)]) for _ in range(5)]
net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(net.parameters())
net(torch.randn(8, 32)).sum().backward()
optimizer.step()
tensors = [torch.randn(100) for _ in range(200)]
losses = [float(t.sum()) for t in tensors]
frame = {str(n): list(range(50)) for n in range(100)}
"""
_SHOWN = ("net", "tensors[0]", "losses[:3]", "tensors[1:5]", "net(torch.randn(8, 32))", "len(frame)")
_HEAPS = (
    ("10^4 objects, wide", _WIDE, 10**4, None),
    ("10^5 objects, wide", _WIDE, 10**5, None),
    ("10^6 objects, wide", _WIDE, 10**6, 2.0),
    ("10^4 objects, cube", _CUBE, 10**4, None),
    ("10^6 objects, cube", _CUBE, 10**6, 2.0),
)


def run() -> Iterator[Row]:
    """Milliseconds that a cell takes more with the extension."""
    with a_notebook() as notebook:
        yield _measure(notebook, "an empty notebook", 2.0)
    for what, code, objects, allowed in _HEAPS:
        with a_notebook() as notebook:
            notebook.run(code.format(objects=objects))
            yield _measure(notebook, what, allowed)
    with a_notebook() as notebook:
        notebook.run(_TORCH)
        for shown in _SHOWN * 10:
            notebook.run_silently(shown)
        yield _measure(notebook, "6 nets, Adam, 200 tensors, 60 in Out", 2.0)


def _measure(notebook: Notebook, what: str, allowed: float | None) -> Row:
    pairs = paired(lambda watched: notebook.time("x = 1", watched=watched, first="x = 0"), _PAIRS, warm_up=5)
    return extra_row("cell", what, pairs, allowed)
