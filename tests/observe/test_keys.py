"""Numbers for modules and optimizers."""

import gc
import weakref

import torch

from torch_inspector.observe.keys import Keys


def test_one_object_has_one_number():
    keys, one, other = Keys(), torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    assert keys.of(one) == keys.of(one) != keys.of(other)


def test_a_number_is_never_used_again():
    keys = Keys()
    numbers = [keys.of(torch.nn.Identity()) for _ in range(50)]
    assert len(set(numbers)) == 50


def test_a_number_keeps_nothing_alive():
    keys, module = Keys(), torch.nn.Linear(2, 2)
    number, gone = keys.of(module), weakref.ref(module)
    assert keys.live(number) is module
    del module
    gc.collect()
    assert gone() is None
    assert keys.live(number) is None


def test_equality_and_hash_of_the_object_are_not_asked():
    class Hostile(torch.nn.Module):
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other):
            raise AssertionError

    keys, one = Keys(), Hostile()
    assert keys.of(one) == keys.of(one)
