"""Deep Q-learning with a target network that follows slowly; actions are chosen under no_grad in train mode.
Tempts: eval-missing, optimizer-of-another-model (the target network is in no optimizer)."""

# %%
import copy
import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)


class Corridor:
    """Walk left or right in a corridor of nine tiles; the door is at the right end."""

    def reset(self):
        self.tile = 4
        return self.observe()

    def observe(self):
        return nn.functional.one_hot(torch.tensor(self.tile), 9).float()

    def step(self, action):
        self.tile += 1 if action else -1
        return self.observe(), float(self.tile == 8), self.tile in (0, 8)


q_net = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 2))
q_target = copy.deepcopy(q_net).requires_grad_(False)
optimizer = torch.optim.Adam(q_net.parameters(), lr=5e-3)
memory = []


def choose(observation, epsilon):
    if random.random() < epsilon:
        return random.randrange(2)
    with torch.no_grad():
        return q_net(observation).argmax().item()


def learn(batch_size=32, discount=0.95, tau=0.05):
    seen, action, reward, following, done = zip(*random.sample(memory, batch_size), strict=True)
    with torch.no_grad():
        best_next = q_target(torch.stack(following)).amax(1)
        goal = torch.tensor(reward) + discount * best_next * (1 - torch.tensor(done))
    value = q_net(torch.stack(seen)).gather(1, torch.tensor(action).unsqueeze(1)).squeeze(1)
    loss = nn.functional.smooth_l1_loss(value, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(q_target.parameters(), q_net.parameters(), strict=True):
            slow.lerp_(fast, tau)


# %%
env = Corridor()
for episode in range(12):
    observation, done = env.reset(), False
    for _ in range(30):
        action = choose(observation, epsilon=0.4)
        following, reward, done = env.step(action)
        memory.append((observation, action, reward, following, float(done)))
        observation = following
        if len(memory) >= 32:
            learn()
        if done:
            break
print(len(memory))
