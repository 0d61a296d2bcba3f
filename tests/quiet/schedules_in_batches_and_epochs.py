"""A warm-up and a cosine over all batches, a plateau per epoch, accumulation with a rest, bfloat16, and a skipped bad batch.
Tempts: epoch-schedule-stepped-per-batch, scheduler-before-optimizer, accumulation-unscaled, nonfinite-loss."""

# %%
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, OneCycleLR, ReduceLROnPlateau, SequentialLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
wind, power = torch.randn(240, 6), torch.randn(240, 1)
batches = DataLoader(TensorDataset(wind, power), batch_size=24, shuffle=True)
turbine = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))

# %%
epochs, warmup = 4, 5
adam = torch.optim.AdamW(turbine.parameters(), lr=3e-3)
steps = epochs * len(batches)
rate = SequentialLR(
    adam, [LinearLR(adam, 0.01, total_iters=warmup), CosineAnnealingLR(adam, steps - warmup)], milestones=[warmup]
)
for epoch in range(epochs):
    for x, y in batches:
        adam.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(turbine(x).float(), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(turbine.parameters(), 1.0)
        adam.step()
        rate.step()


# %%
class Fit:
    """Accumulates four batches, steps for the rest, and lowers the rate when an epoch was no better."""

    def __init__(self, model, every=4):
        self.model, self.every, self.history = model, every, []
        self.sgd = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        self.plateau = ReduceLROnPlateau(self.sgd, patience=1, factor=0.5)

    def epoch(self):
        total = 0.0
        self.sgd.zero_grad()
        for i, (x, y) in enumerate(batches, 1):
            loss = nn.functional.mse_loss(self.model(x), y)
            (loss / self.every).backward()
            total += loss.item()
            if i % self.every == 0 or i == len(batches):
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.sgd.step()
                self.sgd.zero_grad()
        self.history.append(total / len(batches))
        self.plateau.step(self.history[-1])


fit = Fit(turbine)
for _ in range(6):
    fit.epoch()

# %%
sgd = torch.optim.SGD(turbine.parameters(), lr=0.01)
cycle = OneCycleLR(sgd, max_lr=0.05, epochs=2, steps_per_epoch=len(batches))
skipped = 0
for epoch in range(2):
    for i, (x, y) in enumerate(batches):
        if i == 3:
            x = x / 0.0
        sgd.zero_grad()
        loss = nn.functional.mse_loss(turbine(x), y)
        loss.backward()
        if loss.isfinite():
            sgd.step()
        else:
            skipped += 1
        cycle.step()
