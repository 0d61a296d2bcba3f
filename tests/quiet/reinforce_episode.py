"""REINFORCE: log-probabilities are collected during an episode and differentiated at its end, in the same cell.
Tempts: graph-retained-in-list, softmax-before-cross-entropy (the policy ends in softmax, which Categorical wants)."""

# %%
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(28)
payout = torch.tensor([0.2, 0.5, 0.8])
policy = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 3), nn.Softmax(dim=-1))
optimizer = torch.optim.Adam(policy.parameters(), lr=2e-2)


def play(rounds=15):
    log_probs, rewards = [], []
    purse = torch.zeros(2)
    for _ in range(rounds):
        lever = Categorical(policy(purse))
        pulled = lever.sample()
        log_probs.append(lever.log_prob(pulled))
        rewards.append(float(torch.rand(()) < payout[pulled]))
        purse = torch.tensor([sum(rewards) / rounds, len(rewards) / rounds])
    return log_probs, rewards


# %%
for episode in range(8):
    log_probs, rewards = play()
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    advantage = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = -(torch.stack(log_probs) * advantage).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(sum(rewards))
