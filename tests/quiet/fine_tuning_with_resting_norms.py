"""Fine-tuning with sleeping BatchNorm: the class keeps its body asleep, the mode is restored layer by layer, hooks are
removed, the best state is a copy, and constants are buffers.
Tempts: frozen-batchnorm-drifts, mode-restore-flattens, state-dict-alias, hooks-registered-twice, eval-missing."""

# %%
import contextlib
import copy

import torch
from torch import nn

torch.manual_seed(90)
grain, yields = torch.randn(160, 6), torch.randn(160, 1)


class Tuner(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU())
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(24, 1))
        self.register_buffer("scale", torch.full((1,), 2.0))
        self.body.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.body.eval()
        return self

    def forward(self, rows):
        return self.scale * self.head(self.body(rows))


@contextlib.contextmanager
def evaluating(module):
    modes = {layer: layer.training for layer in module.modules()}
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for layer, mode in modes.items():
            layer.training = mode


# %%
tuner = Tuner().train()
tuner.to("cpu")
optimizer = torch.optim.Adam((p for p in tuner.parameters() if p.requires_grad), lr=1e-2)
best, best_state = float("inf"), None
for epoch in range(4):
    for rows, amounts in zip(grain[:128].split(32), yields[:128].split(32), strict=True):
        rows = rows.to("cpu")
        optimizer.zero_grad()
        nn.functional.mse_loss(tuner(rows), amounts).backward()
        optimizer.step()
    with evaluating(tuner):
        score = nn.functional.mse_loss(tuner(grain[128:]), yields[128:]).item()
    if score < best:
        best, best_state = score, copy.deepcopy(tuner.state_dict())

# %%
missing, unexpected = tuner.load_state_dict(best_state, strict=False)
assert not missing and not unexpected
seen = []
for attempt in range(2):
    handle = tuner.body.register_forward_hook(lambda layer, args, output: seen.append(output.mean().item()))
    with evaluating(tuner):
        tuner(grain[:8])
    handle.remove()
print(best, len(seen))
