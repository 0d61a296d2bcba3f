"""From the end of a guilty cell to the bundle under it, in fresh processes: the first finding imports the views."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.notebook import Notebook, a_notebook
from benchmarks.timing import Row, Times, time_row

_PROCESSES = 3
_LATER = 20
_SETUP = """
net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
x, y = torch.randn(32, 20), torch.randint(0, 10, (32,))
"""
_GUILTY = """
for step in range(20):
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
"""


def run() -> Iterator[Row]:
    """Milliseconds from the moment at which `post_run_cell` begins until the bundle is handed to the front end."""
    processes = [_in_a_fresh_process() for _ in range(_PROCESSES)]
    yield time_row("finding", "the first one, with imports", [times[0] for times in processes])
    yield time_row("finding", "one like it later", [one for times in processes for one in times[1:]])


def _in_a_fresh_process() -> list[Times]:
    done = subprocess.run([sys.executable, "-m", __name__], check=True, capture_output=True, text=True)
    return [Times(*times) for times in json.loads(done.stdout.splitlines()[-1])]


def _findings() -> list[Times]:
    with a_notebook() as notebook:
        notebook.run(_SETUP)
        return [_one(notebook) for _ in range(1 + _LATER)]


def _one(notebook: Notebook) -> Times:
    """Seconds for one.

    Raises:
        RuntimeError: the mistake was not found, or more than one bundle came.
    """
    notebook.published.clear()
    notebook.run(_GUILTY)
    begun = notebook.ended
    if begun is None or len(notebook.published) != 1:
        raise RuntimeError(f"{len(notebook.published)} bundles instead of one")
    ended = notebook.published[0]
    return Times(ended.cpu_s - begun.cpu_s, ended.wall_s - begun.wall_s)


if __name__ == "__main__":
    print(json.dumps(_findings()))
