"""Which part of a joined tensor a loss reads, told from the graph."""

import pytest
import torch

from torch_inspector.observe.joined import part_read

BOXES, CHANCES = 0, 1
READ = {
    "all": (lambda out: out, BOXES),
    "a view of all": (lambda out: out.view(-1), BOXES),
    "a slice": (lambda out: out[..., 2:], CHANCES),
    "a slice from the end": (lambda out: out[..., -3:], CHANCES),
    "a slice over both": (lambda out: out[..., 1:4], BOXES),
    "a slice of a slice": (lambda out: out[:2, 1:, 1:][..., 1:], CHANCES),
    "one": (lambda out: out[..., -1], CHANCES),
    "the first": (lambda out: out[..., 0], BOXES),
    "a split": (lambda out: out.split(2, -1)[1], CHANCES),
    "a split by sizes": (lambda out: out.split([2, 4], -1)[0], BOXES),
    "unbound": (lambda out: out.unbind(-1)[3], CHANCES),
    "after a row": (lambda out: out[0][:, 2:], CHANCES),
    "after a mask": (lambda out: out[torch.ones(3, 8, dtype=torch.bool)][:, 2:], CHANCES),
    "after a view": (lambda out: out.view(24, 6)[:, 2:], CHANCES),
    "after a permutation": (lambda out: out.permute(0, 2, 1)[:, 2:], CHANCES),
    "after a transposition": (lambda out: out.mT[:, :2], BOXES),
    "before a new axis": (lambda out: out[..., 2:, None], CHANCES),
    "every other": (lambda out: out[..., ::2], None),
    "by number": (lambda out: out[..., [2, 3]], None),
    "of what was flattened": (lambda out: out.flatten(1)[:, 3:], None),
}


def _way_to_join(read):
    way = [read.square().grad_fn]
    while way[-1].name() != "CatBackward0":
        way.append(way[-1].next_functions[0][0])
    return way


@pytest.mark.parametrize("name", READ)
def test_the_part_that_is_read(name):
    read, wanted = READ[name]
    given = torch.randn(3, 8, 6, requires_grad=True)
    parts = [given[..., :2].exp(), given[..., 2:].sigmoid()]
    assert part_read(_way_to_join(read(torch.cat(parts, -1)))) is (None if wanted is None else parts[wanted].grad_fn)


ORDER = torch.tensor([4, 5, 6, 7, 0, 1, 2, 3])
SQUARE = {
    "turned": (lambda out: out.t()[2:], CHANCES),
    "turned, the first": (lambda out: out.t()[1], BOXES),
    "turned twice": (lambda out: out.t().t()[:, 2:], CHANCES),
    "turned and unbound": (lambda out: out.t().unbind(0)[4], CHANCES),
    "rows of that": (lambda out: out.t()[:, 2:], BOXES),
    "in another order": (lambda out: out[:, ORDER][:, 2:], None),
    "selected in another order": (lambda out: out.index_select(1, ORDER)[:, 2:], None),
    "rows in another order": (lambda out: out.index_select(0, ORDER)[:, 2:], CHANCES),
    "shuffled rows": (lambda out: out[ORDER][:, 2:], CHANCES),
    "shuffled rows of the part": (lambda out: out[:, :2][ORDER], BOXES),
    "a mask that keeps all rows": (lambda out: out[ORDER >= 0][:, 2:], CHANCES),
    "a mask that keeps all columns": (lambda out: out[:, ORDER >= 0][:, 2:], None),
    "turned and shuffled": (lambda out: out.t()[ORDER][2:], None),
    "a table of indices": (lambda out: out[ORDER[:, None], ORDER][:, 2:], None),
}


@pytest.mark.parametrize("name", SQUARE)
def test_as_many_rows_as_columns(name):
    read, wanted = SQUARE[name]
    given = torch.randn(8, 8, requires_grad=True)
    parts = [given[:, :2].exp(), given[:, 2:].sigmoid()]
    assert part_read(_way_to_join(read(torch.cat(parts, 1)))) is (None if wanted is None else parts[wanted].grad_fn)


def test_a_part_without_history_has_the_rest_of_the_length():
    scores = torch.randn(8, 4, requires_grad=True).sigmoid()
    for rest, wanted in ((slice(2, None), scores.grad_fn), (slice(2), None)):
        read = torch.cat([torch.ones(8, 2), scores], 1)[:, rest]
        assert part_read([read.square().grad_fn, read.grad_fn, read.grad_fn.next_functions[0][0]]) is wanted
