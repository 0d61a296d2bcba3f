"""Facts made by hand, with a small training cell as default: a test names only what it is about.

`a_run(a_backward(line=3), a_step(line=4), after=[a_tensor(path="losses[0]")])` sorts each fact into its field.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar, get_args, get_type_hints

from torch_inspector.facts import (
    BackwardFact,
    CallFact,
    Cell,
    ClearFact,
    CountFact,
    ErrorFact,
    ForwardFact,
    GraphFact,
    HolderFact,
    LoaderFact,
    LoopFunctionFact,
    MemoryFact,
    ModeFact,
    ModuleFact,
    OperandFact,
    OptimizerFact,
    PatternFact,
    Place,
    Run,
    Snapshot,
    StepFact,
    TensorFact,
    Trace,
    WitnessFact,
)

MODEL, OPTIMIZER = 1, 2
"""Keys of the one module and the one optimizer of the default cell."""
WEIGHT, BIAS = 11, 12
"""Keys of the module's two parameters."""

SOURCE = """\
for features, labels in loader:
    loss = criterion(model(features), labels)
    loss.backward()
    optimizer.step()
"""

Holding = TypeVar("Holding", Snapshot, Trace)


def a_place(line: int | None = 1, **changes: Any) -> Place:
    """A line of cell 1."""
    return Place(cell=1, line=line)._replace(**changes)


def a_cell(source: str = SOURCE, **changes: Any) -> Cell:
    """The first cell of a notebook; `code` is `source` unless it is given."""
    return replace(Cell(number=1, id="cell-1", source=source, code=source), **changes)


def a_tensor(path: str = "loss", **changes: Any) -> TensorFact:
    """A loss with history."""
    fact = TensorFact(
        path=path,
        shape=(),
        dtype="float32",
        device="cpu",
        nbytes=4,
        storage_nbytes=4,
        requires_grad=True,
        is_leaf=False,
        made_by="NllLossBackward0",
        key=21,
        first_seen_cell=1,
    )
    return fact._replace(**changes)


def a_module(path: str = "model", **changes: Any) -> ModuleFact:
    """A linear layer from 3 to 2, in train mode."""
    fact = ModuleFact(
        key=MODEL,
        path=path,
        kind="Linear",
        training=True,
        devices=("cpu",),
        parameter_count=8,
        trainable_count=8,
        parameter_nbytes=32,
        parameter_keys=frozenset((WEIGHT, BIAS)),
        parameter_names=((WEIGHT, "weight"), (BIAS, "bias")),
    )
    return replace(fact, **changes)


def an_optimizer(path: str = "optimizer", **changes: Any) -> OptimizerFact:
    """Plain SGD over the parameters of `a_module()`."""
    fact = OptimizerFact(
        key=OPTIMIZER,
        path=path,
        kind="SGD",
        learning_rate=0.1,
        parameter_keys=frozenset((WEIGHT, BIAS)),
        parameter_count=2,
    )
    return replace(fact, **changes)


def a_graph(path: str = "losses", **changes: Any) -> GraphFact:
    """A list of three losses, kept before any backward call."""
    fact = GraphFact(
        path=path,
        tensor_count=3,
        node_count=12,
        saved_nbytes=3 << 20,
        scalar=True,
        spent=False,
        sum_length=0,
        differentiated=False,
        complete=True,
        container=True,
        newest_nodes=3,
        key=31,
    )
    return fact._replace(**changes)


def a_holder(path: str = "Out[1]", **changes: Any) -> HolderFact:
    """Four megabytes in IPython's output history."""
    fact = HolderFact(
        path=path, kind="Tensor", nbytes=4 << 20, shape=(1024, 1024), dtype="float32", device="cpu", key=41
    )
    return fact._replace(**changes)


def a_memory(device: str = "host", **changes: Any) -> MemoryFact:
    """A process of 300 MB."""
    return MemoryFact(device=device, allocated_nbytes=300 << 20)._replace(**changes)


def a_pattern(name: str = "softmax-before-log-softmax", **changes: Any) -> PatternFact:
    """A double softmax over `(batch, classes)`."""
    fact = PatternFact(name=name, nodes=("LogSoftmaxBackward0", "SoftmaxBackward0"), shapes=((8, 2), (8, 2)))
    return fact._replace(**changes)


def a_witness(*patterns: PatternFact, **changes: Any) -> WitnessFact:
    """A graph which reaches both parameters of `a_module()`."""
    fact = WitnessFact(
        node_count=4, complete=True, leaf_keys=frozenset((WEIGHT, BIAS)), patterns=patterns, saved_nbytes=64
    )
    return fact._replace(**changes)


def a_backward(line: int | None = 3, **changes: Any) -> BackwardFact:
    """`loss.backward()`, once."""
    fact = BackwardFact(
        order=2,
        place=a_place(line),
        index=1,
        root="loss",
        made_at=a_place(2),
        shape=(),
        retain_graph=False,
        is_grad_call=False,
        witness=a_witness(),
    )
    return fact._replace(**changes)


def a_step(line: int | None = 4, **changes: Any) -> StepFact:
    """`optimizer.step()` after one backward call, nothing left over from the step before."""
    fact = StepFact(
        order=3,
        place=a_place(line),
        index=1,
        optimizer=OPTIMIZER,
        optimizer_kind="SGD",
        has_closure=False,
        backward_count=1,
        kept_gradients=False,
        empty_gradients=False,
        parameter_count=2,
        cleared_at=None,
        discarded_count=0,
        discarded_at=None,
        unreached=False,
        parameter_keys=frozenset((WEIGHT, BIAS)),
        leaf_keys=frozenset((WEIGHT, BIAS)),
        backward_at=a_place(3),
    )
    return fact._replace(**changes)


def a_forward(line: int | None = 2, **changes: Any) -> ForwardFact:
    """`model(features)`, once, in train mode, followed by a backward call."""
    fact = ForwardFact(
        order=1,
        place=a_place(line),
        module=MODEL,
        kind="Linear",
        training=True,
        grad_enabled=True,
        count=1,
        awake=(),
        asleep=(),
        frozen_asleep=0,
        input_shapes=((8, 3),),
        input_devices=("cpu",),
        input_requires_grad=False,
        output_requires_grad=True,
        output_shape=(8, 2),
        graph_nbytes=64,
        reached=True,
        same_input=False,
        caller="__main__",
        trained=False,
        last_order=1,
        parameter_keys=frozenset((WEIGHT, BIAS)),
    )
    return fact._replace(**changes)


def a_mode(training: bool = True, line: int | None = 1, **changes: Any) -> ModeFact:
    """`model.train()` or `model.eval()`."""
    return ModeFact(order=0, place=a_place(line), module=MODEL, training=training)._replace(**changes)


def a_clear(line: int | None = 5, **changes: Any) -> ClearFact:
    """`optimizer.zero_grad()`, once."""
    fact = ClearFact(order=4, place=a_place(line), kind="zero_grad", owner=OPTIMIZER, count=1)
    return fact._replace(**changes)


def a_loader(line: int | None = 1, **changes: Any) -> LoaderFact:
    """Ten batches of eight without workers, hardly waited for."""
    fact = LoaderFact(
        place=a_place(line),
        kind="DataLoader",
        batch_size=8,
        worker_count=0,
        pin_memory=False,
        batch_count=10,
        waited_s=0.01,
    )
    return fact._replace(**changes)


def a_count(kind: str = "backward", count: int = 1, line: int | None = 3, **changes: Any) -> CountFact:
    """So many calls of one kind from one line."""
    return CountFact(kind=kind, place=a_place(line), name="", count=count)._replace(**changes)


def a_loop_function(line: int = 2, **changes: Any) -> LoopFunctionFact:
    """`hooks.append(lambda g: g * scale)` in a loop over `scale`."""
    fact = LoopFunctionFact(line=line, names=("scale",), kind="lambda", kept_by="append", text="lambda g: g * scale")
    return fact._replace(**changes)


def a_call(name: str = "loss.backward", line: int = 3) -> CallFact:
    """A call in the source."""
    return CallFact(name=name, line=line)


def an_operand(path: str = "features", **changes: Any) -> OperandFact:
    """A batch of features that is still on the host."""
    fact = OperandFact(path=path, kind="tensor", devices=("cpu",), shape=(8, 3), dtype="float32")
    return fact._replace(**changes)


def an_error(message: str = "boom", *operands: OperandFact, line: int | None = 2, **changes: Any) -> ErrorFact:
    """A `RuntimeError` in line 2."""
    fact = ErrorFact(kind="RuntimeError", message=message, place=a_place(line), operands=operands)
    return replace(fact, **changes)


def a_snapshot(*facts: Any, **changes: Any) -> Snapshot:
    """What held at one moment, each fact in its field."""
    return _sorted_into(Snapshot(**changes), facts)


def a_trace(*facts: Any, **changes: Any) -> Trace:
    """What happened, each fact in its field; counts are given, not added up."""
    return _sorted_into(Trace(**changes), facts)


def a_run(*happened: Any, before: Any = (), after: Any = (), source: str = SOURCE, **changes: Any) -> Run:
    """One cell: what happened in it, and what held before and after.

    Args:
        happened: Facts of a `Trace`.
        before: A `Snapshot`, or the facts in it.
        after: The same.
        source: Text of the cell.
        changes: Other fields of `Run`.
    """
    return Run(
        cell=changes.pop("cell", a_cell(source)),
        before=before if isinstance(before, Snapshot) else a_snapshot(*before),
        trace=changes.pop("trace", a_trace(*happened)),
        after=after if isinstance(after, Snapshot) else a_snapshot(*after),
        **changes,
    )


def _sorted_into(holder: Holding, facts: tuple[Any, ...]) -> Holding:
    for field, hint in get_type_hints(type(holder)).items():
        kinds = get_args(hint)
        found = tuple(fact for fact in facts if type(fact) in kinds)
        if found:
            holder = replace(holder, **{field: found})  # type: ignore[arg-type]  # only fields of facts get here
            facts = tuple(fact for fact in facts if type(fact) not in kinds)
    assert not facts, f"no field of {type(holder).__name__} takes {facts}"
    return holder
