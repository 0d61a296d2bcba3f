"""A recurrent cell is unrolled by hand; its outputs are collected in a list and stacked into the loss.
Tempts: graph-retained-in-list (every element of the list has a history)."""

# %%
import torch
from torch import nn

torch.manual_seed(30)
time = torch.linspace(0, 12, 61)
waves = torch.stack([(time + phase).sin() for phase in torch.rand(24) * 6])
cell = nn.GRUCell(1, 32)
readout = nn.Linear(32, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *readout.parameters()], lr=1e-2)


def unroll(series):
    hidden = torch.zeros(len(series), 32)
    outputs = []
    for step in range(series.shape[1]):
        hidden = cell(series[:, step : step + 1], hidden)
        outputs.append(readout(hidden))
    return torch.cat(outputs, dim=1)


# %%
for _ in range(6):
    predicted = unroll(waves[:, :-1])
    loss = nn.functional.mse_loss(predicted, waves[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
