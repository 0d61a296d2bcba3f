"""PPO: a rollout under no_grad in train mode, then several clipped epochs over it with an entropy bonus.
Tempts: eval-missing, loss-broadcast (the critic's (N, 1) output is squeezed before the subtraction)."""

# %%
import torch
from torch import nn
from torch.distributions import Categorical


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(3, 32), nn.Tanh())
        self.actor = nn.Linear(32, 4)
        self.critic = nn.Linear(32, 1)

    def forward(self, observation):
        hidden = self.trunk(observation)
        return Categorical(logits=self.actor(hidden)), self.critic(hidden)


torch.manual_seed(29)
agent = ActorCritic()
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3)


# %%
@torch.no_grad()
def rollout(steps=64):
    observations = torch.randn(steps, 3)
    choice, value = agent(observations)
    action = choice.sample()
    reward = (action == observations.argmax(1)).float()
    return observations, action, choice.log_prob(action), reward, reward - value.squeeze(-1)


# %%
for update in range(5):
    observations, action, old_log_prob, reward, advantage = rollout()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    for _ in range(4):
        choice, value = agent(observations)
        ratio = (choice.log_prob(action) - old_log_prob).exp()
        surrogate = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        value_loss = (value.squeeze(-1) - reward).pow(2).mean()
        loss = -surrogate.mean() + 0.5 * value_loss - 0.01 * choice.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
    print(update, reward.mean().item())
