"""DataLoaders in cells."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.randn(20, 3))
loader = DataLoader(data, batch_size=4)
"""


def loaders_of(*cells):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        for cell in cells:
            run = notebook.run(cell)
    assert notebook.errors == [None] * (len(cells) + 1)
    return run.trace.loaders


def test_batches_are_counted_by_line():
    (fact,) = loaders_of("for epoch in range(3):\n    for batch in loader:\n        pass")
    assert (fact.kind, fact.batch_size, fact.worker_count, fact.pin_memory) == ("DataLoader", 4, 0, False)
    assert (fact.batch_count, fact.place.line) == (15, 2)
    assert fact.waited_s > 0


def test_two_loaders_in_one_line():
    facts = loaders_of("other = DataLoader(data, batch_size=10)\nfor a, b in zip(loader, other): pass")
    assert sorted((fact.batch_size, fact.batch_count) for fact in facts) == [(4, 3), (10, 2)]


def test_left_early():
    (fact,) = loaders_of("batch = next(iter(loader))")
    assert fact.batch_count == 1


def test_a_loader_without_batches_of_its_own():
    (fact,) = loaders_of("for row in DataLoader(data, batch_size=None): pass")
    assert (fact.batch_size, fact.batch_count) == (None, 20)


def test_an_iterator_of_an_earlier_cell_is_left_alone():
    assert loaders_of("running = iter(loader)", "batch = next(running)") == ()


def test_a_loader_of_a_class_of_the_users():
    code = (
        "class Own(DataLoader):\n    def __iter__(self):\n        yield from super().__iter__()\n"
        "for b in Own(data): pass"
    )
    (fact,) = loaders_of(code)
    assert (fact.kind, fact.batch_count, fact.place.function) == ("Own", 20, "__iter__")


def test_a_failing_dataset_fails_as_it_would():
    code = (
        "class Bad(torch.utils.data.Dataset):\n    def __len__(self): return 4\n"
        "    def __getitem__(self, i): raise KeyError(i)\n"
        "import traceback\ntry:\n    for b in DataLoader(Bad()): pass\n"
        "except KeyError as error:\n    files = [f.filename for f in traceback.extract_tb(error.__traceback__)]"
    )
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run(code)
        files = notebook.shell.user_ns["files"]
    assert files
    assert not any("torch_inspector" in file for file in files)


@pytest.mark.timeout(60)
def test_workers():
    (fact,) = loaders_of("for b in DataLoader(data, batch_size=5, num_workers=1): pass")
    assert (fact.worker_count, fact.batch_count) == (1, 4)
