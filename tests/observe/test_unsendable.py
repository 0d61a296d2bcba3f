"""What spawned workers cannot find."""

import types

import pytest
from torch.utils.data import DataLoader, Dataset, Subset, default_collate

from tests.cells import a_notebook
from torch_inspector.observe.unsendable import start_method, unsendable


class Here(Dataset[int]):
    """Can be imported by a worker."""

    def __init__(self, *parts):
        self.parts = parts

    def __len__(self):
        return 4


Mine = type("Mine", (Here,), {"__module__": "__main__"})


def spawned(dataset, **more):
    return DataLoader(dataset, num_workers=1, multiprocessing_context="spawn", **more)


def of_the_notebook():
    function = types.FunctionType((lambda rows: rows).__code__, {"__name__": "__main__"})
    function.__qualname__ = "joined"
    return function


@pytest.mark.parametrize(
    ("loader", "names"),
    [
        (lambda: spawned(Mine()), ("Mine",)),
        (lambda: spawned(Subset(Mine(), [0, 1])), ("Mine",)),
        (lambda: spawned(Here([Mine()])), ("Mine",)),
        (lambda: spawned(Here(), collate_fn=of_the_notebook()), ("joined",)),
        (lambda: spawned(Here(lambda x: x)), ("<lambda>",)),
        (lambda: spawned(Here(), collate_fn=default_collate), ()),
        (lambda: spawned([1, 2, 3]), ()),
        (lambda: DataLoader(Mine()), ()),
        (lambda: DataLoader(Mine(), num_workers=1, multiprocessing_context="fork"), ()),
    ],
)
def test_what_only_the_notebook_has(loader, names):
    found = unsendable(loader())
    assert tuple(name.rpartition(".")[2] for name in found) == names


def test_start_methods():
    assert start_method(spawned([1])) == "spawn"
    assert start_method(DataLoader(Here(), num_workers=1, multiprocessing_context="forkserver")) == "forkserver"


def test_a_circle_of_objects_ends():
    parts: list[object] = []
    dataset = Here(parts)
    parts.append(dataset)
    assert unsendable(spawned(dataset)) == ()


@pytest.mark.timeout(120)
def test_a_failing_loader_is_explained():
    cell = (
        "from torch.utils.data import DataLoader, Dataset\n"
        "class Squares(Dataset):\n    def __len__(self): return 4\n    def __getitem__(self, i): return i * i\n"
        "for batch in DataLoader(Squares(), num_workers=1, multiprocessing_context='spawn'): pass"
    )
    with a_notebook() as notebook:
        run = notebook.run(cell)
    (finding,) = run.findings
    assert (finding.slug, finding.line, finding.severity) == ("unpicklable-dataset-under-spawn", 5, "error")
    assert "`Squares`" in finding.message
    assert isinstance(notebook.errors[0], RuntimeError)
