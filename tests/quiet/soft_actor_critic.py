"""SAC: two critics in one optimizer, reparametrised actions, and a temperature that learns by itself.
Tempts: graph-cut (log probabilities are detached for the temperature), missing-zero-grad, signed-sum-loss."""

# %%
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(45)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.mean, self.log_std = nn.Linear(3, 32), nn.Linear(32, 1), nn.Linear(32, 1)

    def sample(self, state):
        hidden = torch.relu(self.body(state))
        normal = Normal(self.mean(hidden), self.log_std(hidden).clamp(-5, 2).exp())
        raw = normal.rsample()
        action = torch.tanh(raw)
        log_prob = normal.log_prob(raw) - torch.log(1 - action.pow(2) + 1e-6)
        return action, log_prob


policy = Policy()
critics = nn.ModuleList(nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1)) for _ in range(2))
targets = nn.ModuleList(nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1)) for _ in range(2))
targets.load_state_dict(critics.state_dict())
log_alpha = torch.zeros(1, requires_grad=True)
policy_opt = torch.optim.Adam(policy.parameters(), lr=3e-4)
critic_opt = torch.optim.Adam(critics.parameters(), lr=3e-4)
alpha_opt = torch.optim.Adam([log_alpha], lr=3e-4)

# %%
for update in range(5):
    state, action, following = torch.randn(32, 3), torch.rand(32, 1), torch.randn(32, 3)
    reward = state.sum(1, keepdim=True)
    with torch.no_grad():
        next_action, next_log_prob = policy.sample(following)
        together = torch.cat([following, next_action], 1)
        worst = torch.min(targets[0](together), targets[1](together)) - log_alpha.exp() * next_log_prob
        wanted = reward + 0.99 * worst
    critic_loss = sum(nn.functional.mse_loss(q(torch.cat([state, action], 1)), wanted) for q in critics)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()

    fresh, log_prob = policy.sample(state)
    value = torch.min(*(q(torch.cat([state, fresh], 1)) for q in critics))
    policy_loss = (log_alpha.exp().detach() * log_prob - value).mean()
    policy_opt.zero_grad()
    policy_loss.backward()
    policy_opt.step()

    alpha_loss = -(log_alpha * (log_prob + 1.0).detach()).mean()
    alpha_opt.zero_grad()
    alpha_loss.backward()
    alpha_opt.step()
    for slow, fast in zip(targets.parameters(), critics.parameters(), strict=True):
        slow.data.mul_(0.995).add_(0.005 * fast.data)
print(log_alpha.exp().item())
