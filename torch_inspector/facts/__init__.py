"""What was seen, as frozen plain values: the language between observers, pitfalls and views.

No tensor, module or optimizer is ever inside a fact, so a `Run` can be kept, compared and drawn again later.
Kinds of facts that are made in large numbers are `NamedTuple`s, the others frozen dataclasses.

A *key* is an integer that stands for one live object. Keys of modules and optimizers are never reused; keys of
parameters are addresses and may only be compared between facts that were taken while both objects were alive.
"""

from __future__ import annotations

from torch_inspector.facts.calls import CheckpointFact, CountFact, EmptiedFact, GeneratorFact, LoaderFact
from torch_inspector.facts.edges import kept_from_edge
from torch_inspector.facts.errors import (
    ChangeFact,
    ErrorFact,
    ForeignFact,
    FrozenFact,
    LayerFact,
    NamedFact,
    OperandFact,
    OutsideFact,
    RefusalFact,
    ShortageFact,
    StaleStateFact,
)
from torch_inspector.facts.forwards import (
    BuiltFact,
    CallerFact,
    DropoutFact,
    ForwardFact,
    LoadFact,
    ModeFact,
    NormsFact,
    TeacherFact,
    ZeroedRows,
)
from torch_inspector.facts.graphs import BackwardFact, CutFact, GraphFact, PatternFact, TableFact, WitnessFact
from torch_inspector.facts.holders import (
    CircleFact,
    DeletionFact,
    ElderFact,
    HolderFact,
    HookFact,
    LocalFact,
    TracebackFact,
)
from torch_inspector.facts.modules import (
    AliasFact,
    AttributeFact,
    DiscardFact,
    HookCountFact,
    ModuleFact,
    RepeatedFact,
    UnlistedFact,
    UnsavedFact,
)
from torch_inspector.facts.optimizers import ClearFact, OptimizerFact, StepFact, UnheldFact, WindowFact
from torch_inspector.facts.place import Cell, LayerCounts, Place, Shape
from torch_inspector.facts.reading import looped_over, only_reads_outputs
from torch_inspector.facts.replaced import assigned, assigned_at, in_line, in_scope, instead, restated, with_operand
from torch_inspector.facts.run import Run
from torch_inspector.facts.schedules import ClipFact, ScalerFact, ScheduleFact
from torch_inspector.facts.snapshot import Snapshot
from torch_inspector.facts.sole import Written, called, operand, sole
from torch_inspector.facts.tensors import MemoryFact, MomentFact, PinFact, TensorFact, is_crossed, is_merged, is_recut
from torch_inspector.facts.text import (
    CallFact,
    CopyFact,
    DataEditFact,
    ExpressionFact,
    GradReadFact,
    IndexingFact,
    LoopFunctionFact,
    MentionFact,
    RebindFact,
)
from torch_inspector.facts.trace import Trace
from torch_inspector.facts.usual_fixes import usual_fix, with_other_way
from torch_inspector.facts.values import (
    NO_ALIGNMENT,
    NO_ROOM,
    NO_TARGET,
    NO_VALUES,
    ExtremeFact,
    LossFact,
    OperationFact,
    ResultFact,
    SeriesFact,
    SpoiledFact,
)
from torch_inspector.facts.viewed import Viewed, computes_sizes, viewed_again

__all__ = [
    "NO_ALIGNMENT",
    "NO_ROOM",
    "NO_TARGET",
    "NO_VALUES",
    "AliasFact",
    "AttributeFact",
    "BackwardFact",
    "BuiltFact",
    "CallFact",
    "CallerFact",
    "Cell",
    "ChangeFact",
    "CheckpointFact",
    "CircleFact",
    "ClearFact",
    "ClipFact",
    "CopyFact",
    "CountFact",
    "CutFact",
    "DataEditFact",
    "DeletionFact",
    "DiscardFact",
    "DropoutFact",
    "ElderFact",
    "EmptiedFact",
    "ErrorFact",
    "ExpressionFact",
    "ExtremeFact",
    "ForeignFact",
    "ForwardFact",
    "FrozenFact",
    "GeneratorFact",
    "GradReadFact",
    "GraphFact",
    "HolderFact",
    "HookCountFact",
    "HookFact",
    "IndexingFact",
    "LayerCounts",
    "LayerFact",
    "LoadFact",
    "LoaderFact",
    "LocalFact",
    "LoopFunctionFact",
    "LossFact",
    "MemoryFact",
    "MentionFact",
    "ModeFact",
    "ModuleFact",
    "MomentFact",
    "NamedFact",
    "NormsFact",
    "OperandFact",
    "OperationFact",
    "OptimizerFact",
    "OutsideFact",
    "PatternFact",
    "PinFact",
    "Place",
    "RebindFact",
    "RefusalFact",
    "RepeatedFact",
    "ResultFact",
    "Run",
    "ScalerFact",
    "ScheduleFact",
    "SeriesFact",
    "Shape",
    "ShortageFact",
    "Snapshot",
    "SpoiledFact",
    "StaleStateFact",
    "StepFact",
    "TableFact",
    "TeacherFact",
    "TensorFact",
    "Trace",
    "TracebackFact",
    "UnheldFact",
    "UnlistedFact",
    "UnsavedFact",
    "Viewed",
    "WindowFact",
    "WitnessFact",
    "Written",
    "ZeroedRows",
    "assigned",
    "assigned_at",
    "called",
    "computes_sizes",
    "in_line",
    "in_scope",
    "instead",
    "is_crossed",
    "is_merged",
    "is_recut",
    "kept_from_edge",
    "looped_over",
    "only_reads_outputs",
    "operand",
    "restated",
    "sole",
    "usual_fix",
    "viewed_again",
    "with_operand",
    "with_other_way",
]
