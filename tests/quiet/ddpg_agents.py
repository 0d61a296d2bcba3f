"""DDPG: the actor learns through the critic, whose gradients of that pass are cleared before its own next step.
Tempts: missing-zero-grad, parameters-missing-from-optimizer, optimizer-of-another-model, signed-sum-loss."""

# %%
import copy

import torch
from torch import nn

torch.manual_seed(44)
actor = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 1), nn.Tanh())
critic = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 1))
slow_actor, slow_critic = copy.deepcopy(actor), copy.deepcopy(critic)
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-4)
critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)


def soft_update(slow, fast, tau=0.01):
    for theirs, ours in zip(slow.parameters(), fast.parameters(), strict=True):
        theirs.data.copy_(tau * ours.data + (1 - tau) * theirs.data)


# %%
for update in range(6):
    state, action = torch.randn(32, 3), torch.rand(32, 1) * 2 - 1
    reward, following, done = -state.pow(2).sum(1, keepdim=True), torch.randn(32, 3), torch.zeros(32, 1)
    with torch.no_grad():
        target = reward + 0.99 * (1 - done) * slow_critic(torch.cat([following, slow_actor(following)], 1))
    critic_loss = nn.functional.mse_loss(critic(torch.cat([state, action], 1)), target)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()

    actor_loss = -critic(torch.cat([state, actor(state)], 1)).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    soft_update(slow_actor, actor)
    soft_update(slow_critic, critic)
print(critic_loss.item(), actor_loss.item())
