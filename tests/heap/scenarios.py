"""Programs that leave memory behind, each in another way. A scenario returns the variables of the user."""

import collections
import functools
import gc
import sys
import threading
import weakref
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset


def trained(model, data, optimizer=None, steps=2):
    optimizer = optimizer or torch.optim.Adam(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        output = model(data)
        (output[0] if isinstance(output, tuple) else output).pow(2).mean().backward()
        optimizer.step()
    return optimizer


def mlp_adam():
    model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10))
    data = torch.randn(64, 100)
    optimizer = trained(model, data)
    return {"model": model, "data": data, "optimizer": optimizer}


def mlp_sgd_momentum():
    model = nn.Linear(300, 200)
    optimizer = trained(model, torch.randn(16, 300), torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    return {"model": model, "optimizer": optimizer}


def lbfgs():
    model, data = nn.Linear(200, 50), torch.randn(32, 200)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = model(data).pow(2).mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    return {"model": model, "optimizer": optimizer, "closure": closure}


def cnn_batchnorm():
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.LazyLinear(10)
    )
    images = torch.randn(8, 3, 16, 16)
    output = model(images)
    return {"model": model, "images": images, "output": output, "optimizer": trained(model, images, steps=1)}


def lstm_outputs():
    model, outputs = nn.LSTM(32, 64, batch_first=True), []
    for _ in range(3):
        states = model(torch.randn(8, 20, 32))
        outputs.append(states[0])
    del states
    return {"model": model, "outputs": outputs}


def gru_hidden_carried():
    model, hidden = nn.GRU(16, 32, batch_first=True), None
    for _ in range(4):
        _, hidden = model(torch.randn(4, 10, 16), hidden)
    return {"model": model, "hidden": hidden}


def transformer_hidden_kept():
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    return {"layer": layer, "hidden": layer(torch.randn(8, 16, 64))}


def attention_kept():
    query, key, value = (torch.randn(2, 4, 64, 16, requires_grad=True) for _ in range(3))
    mixed = nn.functional.scaled_dot_product_attention(query, key, value)
    return {"tensors": [query, key, value], "mixed": mixed}


def sparse_embedding():
    table = nn.Embedding(5_000, 64, sparse=True)
    optimizer = torch.optim.SparseAdam(table.parameters())
    table(torch.randint(0, 5_000, (500,))).sum().backward()
    optimizer.step()
    return {"table": table, "optimizer": optimizer}


def embedding_bag():
    table, head = nn.EmbeddingBag(2_000, 64), nn.Linear(64, 5)
    found = head(table(torch.randint(0, 2_000, (32, 10))))
    return {"table": table, "head": head, "found": found}


def loss_list():
    model, losses = nn.Sequential(nn.Linear(100, 200), nn.Tanh(), nn.Linear(200, 1)), []
    for _ in range(5):
        loss = model(torch.randn(32, 100)).mean()
        losses.append(loss)
    return {"model": model, "losses": losses}


def loss_summed():
    model, total = nn.Linear(100, 100), 0
    for _ in range(5):
        total = total + model(torch.randn(32, 100)).pow(2).mean()
    return {"model": model, "total": total}


def outputs_in_dictionary():
    model = nn.Linear(100, 200)
    history: dict[object, Any] = {"out": [], ("odd", 1): {}}
    for step in range(3):
        out = model(torch.randn(16, 100)).relu()
        history["out"].append(out)
        history["odd", 1][step] = out.exp()
    return {"model": model, "history": history}


def closure_holds():
    def make():
        cached = torch.randn(50_000)
        graph = (torch.randn(300, 300, requires_grad=True) * 2).exp()
        return lambda: (cached, graph)

    return {"later": make()}


def partial_and_cache_hold():
    @functools.lru_cache
    def load(n):
        return torch.randn(n)

    load(10_000)
    return {"load": load, "step": functools.partial(print, torch.randn(20_000), end=torch.randn(5_000))}


def hooks_hold():
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8))

    def collect(seen):
        return lambda _module, _inputs, output: seen.append(output)

    model[0].register_forward_hook(collect([]))
    model(torch.randn(100, 64))
    return {"model": model}


def gradient_hook_holds():
    weight, factor = torch.randn(100, 100, requires_grad=True), torch.randn(100, 100)
    weight.register_hook(lambda grad: grad * factor)
    return {"weight": weight}


def checkpoint_not_reentrant():
    block = nn.Sequential(nn.Linear(100, 400), nn.ReLU(), nn.Linear(400, 100))
    data = torch.randn(64, 100, requires_grad=True)
    return {"block": block, "out": checkpoint(block, data * 1, use_reentrant=False)}


def checkpoint_reentrant():
    block = nn.Sequential(nn.Linear(100, 400), nn.ReLU(), nn.Linear(400, 100))
    data = torch.randn(64, 100, requires_grad=True)
    return {"block": block, "out": checkpoint(block, data * 1, use_reentrant=True)}


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, factor):
        ctx.save_for_backward(value)
        ctx.extra = {"factor": factor * 2, "list": [value.exp()]}
        return value * factor

    @staticmethod
    def backward(ctx, gradient):  # noqa: ARG004
        return gradient, None


def custom_function():
    value = torch.randn(100, 100, requires_grad=True)
    return {"out": Scaled.apply(value * 1, torch.randn(100, 100))}


def saved_on_cpu():
    weight = torch.randn(200, 200, requires_grad=True)
    with torch.autograd.graph.save_on_cpu():
        out = (weight * 3).exp().sin()
    return {"weight": weight, "out": out}


def packed_by_hooks():
    weight = torch.randn(200, 200, requires_grad=True)

    class Box:
        def __init__(self, tensor):
            self.half = tensor.detach().half()

    with torch.autograd.graph.saved_tensors_hooks(Box, lambda box: box.half.float()):
        out = (weight * 3).exp()
    return {"weight": weight, "out": out}


def double_backward():
    weight = torch.randn(100, 100, requires_grad=True)
    loss = weight.pow(3).sum()
    (first,) = torch.autograd.grad(loss, weight, create_graph=True)
    return {"weight": weight, "first": first, "penalty": first.pow(2).sum()}


def retained_and_in_place():
    weight = torch.randn(100, 100, requires_grad=True)
    middle = weight * 2
    middle.retain_grad()
    buffer = torch.zeros(200, 100)
    buffer[:100] = middle
    buffer[50:150].mul_(3)
    buffer.sum().backward(retain_graph=True)
    return {"weight": weight, "middle": middle, "part": buffer[10:12]}


def layouts():
    dense = torch.eye(200)
    return {
        "coo": dense.to_sparse(), "csr": dense.to_sparse_csr(), "csc": dense.to_sparse_csc(),
        "bsr": dense.to_sparse_bsr((10, 10)), "mkldnn": torch.randn(50, 50).to_mkldnn(),
    }  # fmt: skip


def nested():
    parts = [torch.randn(n, 16) for n in (5, 50, 100)]
    strided = torch.nested.nested_tensor(parts)
    jagged = torch.nested.nested_tensor(parts, layout=torch.jagged)
    del parts
    return {"strided": strided, "jagged": jagged}


def quantized_and_complex():
    weights = torch.quantize_per_channel(torch.randn(64, 100), torch.rand(64), torch.zeros(64), 0, torch.qint8)
    return {
        "weights": weights,
        "waves": torch.randn(1_000, dtype=torch.complex64),
        "real": torch.randn(500, dtype=torch.cfloat).real,
    }


def meta_and_tied():
    model = nn.ModuleDict({"a": nn.Linear(50, 50), "b": nn.Linear(50, 50)})
    model["b"].weight = model["a"].weight
    return {"model": model, "nothing": torch.empty(10_000, 10_000, device="meta")}


def views_and_expanded():
    small = torch.randn(100_000)[:5]
    return {"small": small, "wide": torch.randn(1_000, 1).expand(1_000, 500), "turned": torch.randn(30, 40).t()}


def numpy_shared():
    import numpy as np

    array = np.ones(50_000)
    given = torch.randn(10_000)
    back = given.numpy()
    del given
    return {
        "array": array,
        "shared": torch.from_numpy(array),
        "back": back,
        "raw": torch.frombuffer(bytearray(4_000), dtype=torch.uint8),
    }


def storages_kept():
    tensor = torch.randn(10_000)
    return {
        "storage": tensor.untyped_storage(),
        "typed": torch.randn(5_000).storage(),
        "grown": torch.empty(0).resize_(3_000),
    }


def loaded_weights():
    import io

    buffer = io.BytesIO()
    torch.save({"w": torch.randn(100, 100)}, buffer)
    buffer.seek(0)
    return {"state": torch.load(buffer), "clone": torch._lazy_clone(torch.randn(5_000))}


def loader_in_flight():
    loader = DataLoader(TensorDataset(torch.randn(1_000, 30)), batch_size=100, shuffle=True)
    batches = iter(loader)
    return {"loader": loader, "batches": batches, "batch": next(batches)}


def generator_paused():
    def batches():
        pool = torch.randn(10_000)
        for start in range(0, 10_000, 1_000):
            yield pool[start : start + 1_000].clone()

    running = batches()
    first = next(running)
    return {"running": running, "first": first}


def exception_with_locals():
    def fail():
        activations = torch.randn(30_000)
        raise ValueError(activations.shape)

    try:
        fail()
    except ValueError as error:
        sys.last_value, sys.last_traceback, sys.last_type = error, error.__traceback__, type(error)
    return {}


def exception_in_variable():
    kept = []

    def fail():
        graph = (torch.randn(100, 100, requires_grad=True) * 2).exp()
        raise RuntimeError(str(graph.shape))

    try:
        fail()
    except RuntimeError as error:
        kept.append(error)
    return {"kept": kept}


def output_history():
    model = nn.Linear(100, 100)
    shown = {3: model(torch.randn(50, 100)), 7: torch.randn(20_000)}
    return {"model": model, "Out": shown, "_": shown[7], "_7": shown[7]}


def cycle():
    class Node:
        self: Any
        data: Any

    gc.collect()
    gc.disable()
    node = Node()
    node.self, node.data = node, torch.randn(40_000)
    del node
    return {}


def odd_holders():
    class Slotted:
        __slots__ = ("tensor",)
        tensor: Any

    class Holder:
        shared = torch.randn(3_000)

    slotted = Slotted()
    slotted.tensor = torch.randn(2_000)
    key, queue = torch.randn(700), collections.deque([torch.randn(1_500)], maxlen=4)
    local = threading.local()
    local.value = torch.randn(900)
    Holder.__module__ = Slotted.__module__ = "__main__"
    return {
        "slotted": slotted, "Holder": Holder, "by_key": {key: 1}, "queue": queue, "local": local,
        "weak": weakref.WeakKeyDictionary({Holder: torch.randn(800)}), "bound": [torch.randn(600)].__len__,
    }  # fmt: skip


def default_argument():
    def scale(value, factor=torch.randn(4_000)):  # noqa: B008
        return value * factor

    return {"scale": scale}


def shadow_copies():
    import copy

    model = nn.Linear(100, 100)
    average = copy.deepcopy(model)
    swa = torch.optim.swa_utils.AveragedModel(model)
    return {
        "model": model,
        "average": average,
        "swa": swa,
        "state": {k: v.clone() for k, v in model.state_dict().items()},
    }


def forward_mode():
    from torch.autograd import forward_ad

    level = forward_ad.dual_level()
    level.__enter__()
    return {"dual": forward_ad.make_dual(torch.randn(5_000), torch.randn(5_000)), "level": level}


def leaked_from_vmap():
    leaked = []

    def leak(row):
        leaked.append(row * 2)
        return row

    torch.vmap(leak)(torch.randn(50, 100))
    return {"leaked": leaked}


def compiled_like():
    weight = torch.randn(64, 64, requires_grad=True)
    step = torch.compile(lambda x: (x @ weight).relu().exp(), backend="aot_eager")
    return {"weight": weight, "step": step, "out": step(torch.randn(32, 64))}


def many_small():
    return {"many": [torch.randn(3) for _ in range(3_000)]}


def typed_views_of_bytes():
    raw = torch.empty(40_000, dtype=torch.uint8)
    return {"floats": raw[:20_000].view(torch.float32), "ints": raw[20_000:].view(torch.int32)}


def autocast_output():
    model, data = nn.Linear(200, 200), torch.randn(32, 200)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(data).sum()
    return {"model": model, "data": data, "out": out}


ALL = [
    mlp_adam, mlp_sgd_momentum, lbfgs, cnn_batchnorm, lstm_outputs, gru_hidden_carried, transformer_hidden_kept,
    attention_kept, sparse_embedding, embedding_bag, loss_list, loss_summed, outputs_in_dictionary, closure_holds,
    partial_and_cache_hold, hooks_hold, gradient_hook_holds, checkpoint_not_reentrant, checkpoint_reentrant,
    custom_function, saved_on_cpu, packed_by_hooks, double_backward, retained_and_in_place, layouts, nested,
    quantized_and_complex, meta_and_tied, views_and_expanded, numpy_shared, storages_kept, loaded_weights,
    loader_in_flight, generator_paused, exception_with_locals, exception_in_variable, output_history, cycle,
    odd_holders, default_argument, shadow_copies, forward_mode, leaked_from_vmap, compiled_like, many_small,
    typed_views_of_bytes, autocast_output,
]  # fmt: skip
