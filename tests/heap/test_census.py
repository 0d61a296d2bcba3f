"""Every tensor on the heap is found, whatever its class."""

import torch
from torch import nn

from torch_inspector.observe.heap import census


class Marked(torch.Tensor):
    """A class of the user's own."""


def is_found(thing):
    return any(one is thing for one in census.tensors_of_heap())


def test_tensors_parameters_and_storages():
    tensor = torch.ones(3)
    layer, storage = nn.Linear(2, 2), tensor.untyped_storage()
    assert is_found(tensor)
    assert is_found(layer.weight)
    assert is_found(storage)


def test_a_class_of_torch_that_had_no_instance_is_looked_for_once_it_has_one():
    census.tensors_of_heap()
    assert id(nn.UninitializedBuffer) in census._without
    buffer = nn.UninitializedBuffer()
    assert is_found(buffer)
    assert id(nn.UninitializedBuffer) not in census._without
    del buffer
    census.tensors_of_heap()
    assert id(nn.UninitializedBuffer) in census._without


def test_a_class_of_the_user_is_always_looked_for():
    census.tensors_of_heap()
    assert id(Marked) not in census._without
    marked = torch.ones(2).as_subclass(Marked)
    assert is_found(marked)
