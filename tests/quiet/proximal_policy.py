"""PPO: a rollout without gradients in train mode, then several epochs over the same data with a clipped ratio.
Tempts: eval-missing, graph-retained-in-list, backward-twice, whole batches of detached advantages."""

# %%
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(46)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Dropout(0.0))
        self.pi, self.v = nn.Linear(32, 2), nn.Linear(32, 1)

    def forward(self, seen):
        hidden = self.body(seen)
        return Categorical(logits=self.pi(hidden)), self.v(hidden).squeeze(-1)


agent = ActorCritic()
opt = torch.optim.Adam(agent.parameters(), lr=3e-4, eps=1e-5)


def rollout(length=64):
    seen, actions, logs, values, rewards = [], [], [], [], []
    state = torch.zeros(4)
    for _ in range(length):
        with torch.no_grad():
            policy, value = agent(state)
            action = policy.sample()
        seen.append(state)
        actions.append(action)
        logs.append(policy.log_prob(action))
        values.append(value)
        rewards.append(float(action == 1) - state.abs().sum().item() * 0.1)
        state = 0.9 * state + 0.1 * torch.randn(4)
    return *map(torch.stack, (seen, actions, logs, values)), torch.tensor(rewards)


# %%
for iteration in range(2):
    seen, actions, old_logs, values, rewards = rollout()
    advantage, last = torch.zeros(64), 0.0
    for t in reversed(range(64)):
        following = values[t + 1] if t < 63 else 0.0
        last = rewards[t] + 0.99 * following - values[t] + 0.99 * 0.95 * last
        advantage[t] = last
    returns = advantage + values
    for epoch in range(3):
        for index in torch.randperm(64).split(16):
            policy, value = agent(seen[index])
            ratio = (policy.log_prob(actions[index]) - old_logs[index]).exp()
            chosen = advantage[index]
            clipped = ratio.clamp(0.8, 1.2) * chosen
            loss = -torch.min(ratio * chosen, clipped).mean() + 0.5 * (value - returns[index]).pow(2).mean()
            loss = loss - 0.01 * policy.entropy().mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            opt.step()
print(loss.item())
