"""A2C: one network, the advantage is detached for the policy; losses of the steps are stacked into one.
Tempts: graph-retained-in-list, accidental-detach, signed-sum-loss."""

# %%
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(64)
body, pi, v = nn.Linear(4, 32), nn.Linear(32, 3), nn.Linear(32, 1)
parameters = [*body.parameters(), *pi.parameters(), *v.parameters()]
opt = torch.optim.Adam(parameters, lr=7e-4)

# %%
state = torch.randn(8, 4)
for update in range(5):
    logs, values, rewards, entropies = [], [], [], []
    for _ in range(5):
        hidden = torch.relu(body(state))
        policy = Categorical(logits=pi(hidden))
        action = policy.sample()
        logs.append(policy.log_prob(action))
        values.append(v(hidden).squeeze(1))
        entropies.append(policy.entropy())
        rewards.append((action == 1).float())
        state = torch.randn(8, 4)
    with torch.no_grad():
        following = v(torch.relu(body(state))).squeeze(1)
    returns = []
    for reward in reversed(rewards):
        following = reward + 0.99 * following
        returns.insert(0, following)
    returns, values = torch.stack(returns), torch.stack(values)
    advantage = returns - values
    policy_loss = -(torch.stack(logs) * advantage.detach()).mean()
    loss = policy_loss + 0.5 * advantage.pow(2).mean() - 0.01 * torch.stack(entropies).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 0.5)
    opt.step()
print(loss.item())
