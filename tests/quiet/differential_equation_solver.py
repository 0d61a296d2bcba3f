"""A neural ODE, unrolled by Euler steps in a list; the loss looks at all of the path.
Tempts: graph-retained-in-list (the states are needed until backward), hidden-state-not-detached."""

# %%
import torch
from torch import nn

torch.manual_seed(50)
field = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
opt = torch.optim.RMSprop(field.parameters(), lr=1e-3)
angle = torch.linspace(0, 3.1, 20)
truth = torch.stack([angle.cos(), angle.sin()], dim=1)


def solve(start, steps, dt=0.16):
    states = [start]
    for _ in range(steps - 1):
        states.append(states[-1] + dt * field(states[-1]))
    return torch.stack(states)


# %%
for it in range(8):
    path = solve(truth[0], 20)
    loss = (path - truth).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
with torch.no_grad():
    final = solve(truth[0], 30)[-1]
