"""Everything that is not public torch API, tested for at import and used only through this file."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from functools import cache, partial
from types import CodeType, ModuleType
from typing import Any

import torch
from torch.utils import _python_dispatch

from torch_inspector.observe import as_torch
from torch_inspector.observe.kinds import is_one_of

Node = Any
"""A node of the autograd graph, as `grad_fn` shows it."""
DispatchMode = _python_dispatch.TorchDispatchMode
"""A block in which one of our own objects is asked to run each operation."""

_NO_NODE = -1


class unseen:  # noqa: N801  (used like a function, and too hot for a generator)
    """Looks at tensors in the block run no `__torch_function__`, no `__torch_dispatch__` and no mode of the user."""

    __slots__ = ("_dispatch", "_function")

    def __enter__(self) -> None:
        """Switches both off."""
        self._function: Any = torch._C.DisableTorchFunction()
        self._dispatch: Any = torch._C._DisableTorchDispatch()
        self._function.__enter__()
        self._dispatch.__enter__()

    def __exit__(self, *_: object) -> None:
        """Switches both back."""
        self._dispatch.__exit__(None, None, None)
        self._function.__exit__(None, None, None)


sequence_number: Callable[[], int] = getattr(torch._C._autograd, "_get_sequence_nr", int)
"""How many autograd nodes this thread has made so far; always 0 where torch does not tell."""


def scripted_mode(script: Any) -> bool:
    """True for a module that was scripted, which keeps its mode in C++, and is in train mode."""
    return type(script) is torch._C.ScriptModule and script.getattr("training") is True  # type: ignore[attr-defined]


def node_number(node: Node) -> int:
    """Position of a node among those its thread made; very large for leaves, -1 if unknown."""
    try:
        return int(node._sequence_nr())
    except Exception:  # noqa: BLE001
        return _NO_NODE


def skip_frames(code: CodeType, *, and_below: bool) -> None:
    """Tells torch.compile not to compile frames of this code of ours; calls from compiled code still go through it.

    Args:
        code: What is not to be compiled.
        and_below: True to leave alone all that it calls as well; False for wrappers, which call the user's code.
    """
    frames: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if hasattr(frames, "set_code_exec_strategy"):
        action = frames._FrameAction
        below = action.SKIP if and_below else action.DEFAULT
        frames.set_code_exec_strategy(code, frames._FrameExecStrategy(action.SKIP, below))
    elif hasattr(frames, "skip_code"):
        frames.skip_code(code)


def skip_package(prefix: str) -> None:
    """Does that for every function of our modules that are loaded under a name, once: code stays marked."""
    for name, module in list(sys.modules.items()):
        if name.startswith(prefix) and _marked.get(name) is not module:
            for thing in list(vars(module).values()):
                _skip_functions(thing, name)
            if not getattr(module.__spec__, "_initializing", False):
                _marked[name] = module


_marked: dict[str, ModuleType] = {}
"""Our modules whose functions torch.compile was told of."""


def _skip_functions(thing: Any, module: str) -> None:
    if getattr(thing, "__module__", None) != module:
        return
    parts = list(vars(thing).values()) if isinstance(thing, type) else [thing]
    for part in parts:
        code = getattr(getattr(part, "__func__", getattr(part, "fget", None) or part), "__code__", None)
        if code is not None:
            skip_frames(code, and_below=True)


def tell_dynamo() -> None:
    """Tells torch.compile, if it is loaded, which `Module.__call__` is the ordinary one now.

    It notes that when it is first imported, and gives up its short cut for modules where another one is found later.
    """
    for name in ("torch._dynamo.utils", "torch._dynamo.variables.nn_module"):
        module: Any = sys.modules.get(name)
        if module is not None and hasattr(module, "unpatched_nn_module_call"):
            module.unpatched_nn_module_call = torch.nn.Module.__call__


def tie(node: Node, thing: object) -> None:
    """Lets an object live as long as a node does, in the dictionary that torch keeps for anomaly mode."""
    try:
        node.metadata.setdefault("torch_inspector", []).append(thing)
    except Exception:  # noqa: BLE001
        return


def output_shape(node: Node, number: int = 0) -> tuple[int, ...] | None:
    """Shape of a result of the operation behind a node; None if torch does not tell."""
    try:
        return tuple(int(n) for n in node._input_metadata[number].shape)
    except Exception:  # noqa: BLE001
        return None if number else _noted_shape(node)


def note_shape(node: Node, shape: tuple[int, ...]) -> None:
    """Keeps with a node the shape of its first result, where torch does not tell it; see `told_shapes.py`."""
    node.metadata[_SHAPE] = shape


def _noted_shape(node: Node) -> tuple[int, ...] | None:
    try:
        return None if hasattr(type(node), "_input_metadata") else node.metadata.get(_SHAPE)
    except Exception:  # noqa: BLE001
        return None


_SHAPE = "torch_inspector_shape"


def turned_axes(node: Node) -> tuple[int, ...] | None:
    """The axes that a `permute` was given, counted from the front; None if torch does not tell."""
    try:
        axes = node._saved_dims
        return tuple((axis - 2**64 if axis >= 2**63 else axis) % len(axes) for axis in axes)
    except Exception:  # noqa: BLE001
        return None


def output_itemsize(node: Node, number: int = 0) -> int:
    """Bytes of one element of a result of the operation behind a node; 0 if torch does not tell."""
    try:
        return int(node._input_metadata[number].dtype.itemsize)
    except Exception:  # noqa: BLE001
        return 0


def is_leaf_node(node: Node) -> bool:
    """True for the node that adds a gradient to a leaf tensor."""
    return type(node).__name__ == "AccumulateGrad"


def storage_of(tensor: torch.Tensor) -> tuple[int, int] | None:
    """Identity and bytes of the storage behind a tensor; None if it has none (sparse, nested, functorch, meta)."""
    try:
        storage = None if as_torch.is_meta(tensor) else as_torch.untyped_storage(tensor)
        return None if storage is None else (storage._cdata, storage.nbytes())
    except Exception:  # noqa: BLE001
        return None


storage_use_count: Callable[[int], int] | None = getattr(torch._C, "_storage_Use_Count", None)
"""References to the storage at an address (`storage_of`), from Python and C++; None where torch does not tell."""

tensor_use_count: Callable[[Any], int] = getattr(torch.Tensor, "_use_count", lambda _: 0)
"""References to a tensor in C++; always 0 where torch does not tell."""


def is_traced() -> bool:
    """True inside `torch.jit.trace`, and under a `TorchDispatchMode`, which counts or records operations."""
    asked = (getattr(torch._C, name, None) for name in ("_is_tracing", "_len_torch_dispatch_stack"))
    return any(ask() for ask in asked if ask is not None)


def deep_walk_limit() -> int:
    """How far below its root a graph may be read.

    A chain of read nodes is freed by recursion: 50,000 overflow a stack of 8 MB. Other stacks are smaller.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return 1_000
    import resource

    soft = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return 10_000 if soft == resource.RLIM_INFINITY or soft >= 8 << 20 else 1_000


_OF_ALL_MODULES = tuple(f"_global_{kind}_hooks" for kind in ("forward", "forward_pre", "backward", "backward_pre"))


def has_global_hooks() -> bool:
    """True if hooks are registered that run with every module, or torch does not tell."""
    fields = vars(torch.nn.modules.module)
    return any(fields.get(name) != {} for name in _OF_ALL_MODULES)


def under_a_mode() -> bool:
    """True while a mode of the user's sees operations or functions of torch."""
    asked = (getattr(torch._C, name, None) for name in ("_len_torch_function_stack", "_len_torch_dispatch_stack"))
    return any(ask is None or ask() for ask in asked)


def kept_by_function(node: Node) -> list[Any]:
    """What the node of a custom function keeps besides saved tensors: attributes that were set on `ctx`."""
    if not issubclass(type(node), torch.autograd.function.BackwardCFunction):
        return []
    return [part for part in gc.get_referents(node) if is_one_of(part, (dict, tuple))]


def parts_of(tensor: torch.Tensor) -> list[tuple[str, torch.Tensor]]:
    """Tensors of which a tensor without a storage of its own is made, with how they are asked for."""
    return [(name, part) for name, ask in _PARTS for part in _asked(partial(ask, tensor)) if part is not tensor]


_PARTS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("._indices()", lambda t: t._indices()),
    ("._values()", lambda t: t._values()),
    (".crow_indices()", lambda t: t.crow_indices()),
    (".col_indices()", lambda t: t.col_indices()),
    (".ccol_indices()", lambda t: t.ccol_indices()),
    (".row_indices()", lambda t: t.row_indices()),
    (".values()", lambda t: t.values()),
    ("", torch._C._functorch.get_unwrapped),
)


def extras_of(tensor: torch.Tensor) -> list[tuple[str, torch.Tensor]]:
    """Small tensors beside the elements: scales of quantized channels, sizes of nested tensors, tangents."""
    found: list[tuple[str, torch.Tensor]] = []
    if tensor.is_quantized:
        for name in ("q_per_channel_scales", "q_per_channel_zero_points"):
            found += [(f".{name}()", part) for part in _asked(getattr(tensor, name))]
    if tensor.is_nested and tensor.layout == torch.strided:
        for name in ("_nested_tensor_size", "_nested_tensor_strides", "_nested_tensor_storage_offsets"):
            found += [(f".{name}()", part) for part in _asked(getattr(tensor, name))]
    if forward_mode():
        unpack: Any = getattr(torch._VF, "_unpack_dual", None)
        tangents = _asked(lambda: unpack(tensor, level=0).tangent) if unpack is not None else []
        found += [(" (tangent)", part) for part in tangents]
    return found


def forward_mode() -> bool:
    """True while gradients are computed forward: tensors may carry tangents."""
    return getattr(sys.modules.get("torch.autograd.forward_ad"), "_current_level", -1) >= 0


def _asked(ask: Callable[[], Any]) -> list[torch.Tensor]:
    try:
        part = ask()
    except Exception:  # noqa: BLE001  (each layout refuses the questions of the others in its own way)
        return []
    return [part] if isinstance(part, torch.Tensor) else []


def opaque_nbytes(tensor: torch.Tensor) -> int:
    """Bytes of a tensor whose memory another library lays out (mkldnn); 0 for all others."""
    try:
        return tensor.numel() * tensor.element_size() if tensor.is_mkldnn else 0
    except Exception:  # noqa: BLE001
        return 0


@cache
def tells_its_class() -> bool:
    """True if the garbage collector sees that tensors and storages refer to their class."""
    try:
        with unseen():
            probe = torch.empty(0, device="meta")
            pairs = ((probe, torch.Tensor), (probe.untyped_storage(), torch.UntypedStorage))
    except Exception:  # noqa: BLE001  (a default device or a mode of the user's)
        return False
    return all(any(part is kind for part in gc.get_referents(thing)) for thing, kind in pairs)


def output_dtype(node: Node, number: int = 0) -> torch.dtype | None:
    """Type of the numbers of a result of the operation behind a node; None if torch does not tell."""
    try:
        dtype = node._input_metadata[number].dtype
    except Exception:  # noqa: BLE001
        return None
    return dtype if isinstance(dtype, torch.dtype) else None


# Losses which note how they were reduced, as a plain number: 1 for a mean, 2 for a sum.
_REDUCED = frozenset(
    f"{name}Backward0"
    for name in (
        "BinaryCrossEntropy",
        "BinaryCrossEntropyWithLogits",
        "HuberLoss",
        "MseLoss",
        "MultiMarginLoss",
        "MultilabelMarginLoss",
        "NllLoss",
        "NllLoss2D",
        "SmoothL1Loss",
        "SoftMarginLoss",
    )
)


def averages(node: Node) -> bool | None:
    """True if the operation behind a node is a mean, or a loss that averages; None if that is not known."""
    name = type(node).__name__
    if name in ("MeanBackward0", "MeanBackward1"):
        return True
    if name not in _REDUCED:
        return None
    try:
        return int(node._saved_reduction) == 1
    except Exception:  # noqa: BLE001
        return None
