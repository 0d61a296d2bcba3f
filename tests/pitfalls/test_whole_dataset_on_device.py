"""Data on an accelerator, from facts: what takes a large part of it, and what does not or is no data."""

from typing import Any

import pytest

from tests.fakes import a_cell, a_run, a_tensor
from torch_inspector.facts import MemoryFact, TensorFact
from torch_inspector.pitfalls.memory.whole_dataset_on_device import check

GB = 1 << 30
DEVICE = MemoryFact("cuda:0", 5 * GB, total_nbytes=12 * GB)
MOVE = 'photos = photos.to("cuda")\nfor i in range(0, 9000, 64):\n    net(photos[i : i + 64])'


def photos(nbytes=5 * GB, **changes):
    values = {"device": "cuda:0", "nbytes": nbytes, "storage_nbytes": nbytes, "shape": (9000, 3, 224, 224)}
    return a_tensor(**{"path": "photos", "requires_grad": False, "is_leaf": True, "made_by": "", **values, **changes})


def found(*tensors, source=MOVE, memory=DEVICE, before=()):
    return list(check(a_run(cell=a_cell(source), before=before, after=[memory, *tensors])))


def test_a_dataset_that_is_indexed():
    (finding,) = found(photos())
    assert finding.message.startswith("`photos` take 5.00 GB of the 12.0 GB of cuda:0, 41 %")
    assert (finding.subject, finding.line) == ("photos", 1)
    assert "batch.to('cuda:0')" in finding.fix


def test_a_dataset_in_a_loader():
    source = "from torch.utils.data import *\nphotos = load().cuda()\nloader = DataLoader(TensorDataset(photos, y), 64)"
    (finding,) = found(photos(), source=source)
    assert finding.line == 2


def test_parts_count_together():
    half = photos(3 * GB, path="labels", key=8)
    (finding,) = found(photos(3 * GB), half, source=MOVE + "\n    labels[i]")
    assert "`photos`, `labels` take 6.00 GB" in finding.message


SILENT: dict[str, tuple[list[TensorFact], dict[str, Any]]] = {
    "small": ([photos(3 * GB)], {}),
    "on the host": ([photos(device="cpu")], {}),
    "with gradients": ([photos(requires_grad=True)], {}),
    "computed": ([photos(is_leaf=False)], {}),
    "used as a whole": ([photos()], {"source": 'photos = photos.to("cuda")\nnet(photos)'}),
    "seen whole by a slice": ([photos()], {"source": 'photos = photos.to("cuda")\nphotos[:] = 0'}),
    "told before": ([photos()], {"before": [photos()]}),
    "of a device without a size": ([photos()], {"memory": MemoryFact("cuda:0", 5 * GB)}),
    "of a device without memory": ([photos(nbytes=0)], {"memory": MemoryFact("cuda:0", 0, total_nbytes=0)}),
}


@pytest.mark.parametrize("name", SILENT)
def test_silent(name):
    tensors, changes = SILENT[name]
    assert found(*tensors, **changes) == []
