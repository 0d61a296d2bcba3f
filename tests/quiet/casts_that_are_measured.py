"""Conversions that are timed, counted, profiled or expected to fail: their results are thrown away on purpose.
Tempts: to-result-discarded."""

# %%
import contextlib
import time

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

x = torch.randn(200, 200)


class Counted(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


# %%
for _ in range(3):
    x.to(torch.bfloat16)
began = time.perf_counter()
x.double()
seconds = time.perf_counter() - began

# %%
with Counted() as counted:
    x.to(torch.float64)
with profile(activities=[ProfilerActivity.CPU]):
    x.half()
with contextlib.suppress(RuntimeError, AssertionError):
    x.to("cuda:7")
assert counted.count > 0
