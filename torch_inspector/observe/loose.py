"""Parameters that stand by themselves in a plain container of a module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from torch_inspector.facts import UnlistedFact
from torch_inspector.observe import as_torch, kinds, layers
from torch_inspector.observe.containers import containers_of, has_odd_keys


def loose_facts(module: Any, known: Callable[[], frozenset[int]], held: frozenset[int]) -> Iterator[UnlistedFact]:
    """One fact per plain container that is an attribute of a module and has such parameters.

    Args:
        module: What is looked into, not what is below it.
        known: Gives the parameters that a module knows of, or that a variable of their own leads to.
        held: Addresses of the parameters that optimizers hold.
    """
    for name, container, elements in containers_of(module):
        found = [one for one in elements if kinds.is_a(one, torch.nn.Parameter)]
        strangers = {id(p): p for p in found if as_torch.requires_grad(p) and id(p) not in known()} if found else {}
        if strangers:
            yield stranger_fact(strangers, held)._replace(
                kind=kinds.class_name(module),
                attribute=name,
                container=kinds.class_name(container),
                training=kinds.fields_of(module).get("training") is True,
                loose=True,
                odd_keys=has_odd_keys(container),
                mixed=any(kinds.is_a(one, torch.Tensor) for one in elements if not kinds.is_a(one, torch.nn.Parameter)),
            )


def stranger_fact(parameters: dict[int, Any], held: frozenset[int]) -> UnlistedFact:
    """What is known of parameters that a module does not know of, by their addresses, without whose they are."""
    return UnlistedFact(
        module="",
        kind="",
        attribute="",
        container="",
        count=len(parameters),
        layer_kind="Parameter",
        parameter_count=sum(layers.number_of(p) for p in parameters.values()),
        trainable_keys=frozenset(key for key, p in parameters.items() if as_torch.requires_grad(p)),
        named_elsewhere=False,
        held=bool(held & parameters.keys()),
        training=True,
    )
