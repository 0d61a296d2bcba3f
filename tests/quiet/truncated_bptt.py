"""Truncated backpropagation through time: the hidden state crosses chunk borders detached.
Tempts: graph-retained-in-list, missing-zero-grad (state lives on between steps)."""

# %%
import torch
from torch import nn

torch.manual_seed(9)
melody = torch.randint(0, 12, (8, 121))
embed = nn.Embedding(12, 16)
cell = nn.LSTM(16, 24, batch_first=True)
readout = nn.Linear(24, 12)
weights = [*embed.parameters(), *cell.parameters(), *readout.parameters()]
optimizer = torch.optim.Adam(weights, lr=5e-3)

# %%
for _ in range(2):
    state = None
    for start in range(0, 120, 20):
        notes, following = melody[:, start : start + 20], melody[:, start + 1 : start + 21]
        if state is not None:
            state = tuple(part.detach() for part in state)
        hidden, state = cell(embed(notes), state)
        loss = nn.functional.cross_entropy(readout(hidden).flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
    print(round(loss.item(), 3))
