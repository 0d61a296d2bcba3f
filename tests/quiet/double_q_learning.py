"""Double DQN with a replay memory of detached tensors; the target network is refreshed by load_state_dict.
Tempts: eval-missing, graph-retained-in-list, loss-broadcast (columns are squeezed), state-dict-alias."""

# %%
import random
from collections import deque, namedtuple

import torch
from torch import nn

torch.manual_seed(63)
random.seed(63)
Transition = namedtuple("Transition", "state action next_state reward done")
policy_net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target_net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target_net.load_state_dict(policy_net.state_dict())
target_net.eval()
optimizer = torch.optim.RMSprop(policy_net.parameters(), lr=1e-3)
memory = deque(maxlen=500)


def select_action(state, eps):
    if random.random() > eps:
        with torch.no_grad():
            return policy_net(state).max(1)[1].view(1, 1)
    return torch.tensor([[random.randrange(2)]])


def optimize_model(batch_size=16, gamma=0.99):
    if len(memory) < batch_size:
        return None
    batch = Transition(*zip(*random.sample(memory, batch_size), strict=True))
    state, following = torch.cat(batch.state), torch.cat(batch.next_state)
    action, reward, done = torch.cat(batch.action), torch.cat(batch.reward), torch.cat(batch.done)
    chosen = policy_net(state).gather(1, action).squeeze(1)
    with torch.no_grad():
        best = policy_net(following).argmax(1, keepdim=True)
        expected = reward + gamma * (1 - done) * target_net(following).gather(1, best).squeeze(1)
    loss = nn.functional.smooth_l1_loss(chosen, expected)
    optimizer.zero_grad()
    loss.backward()
    for param in policy_net.parameters():
        param.grad.data.clamp_(-1, 1)
    optimizer.step()
    return loss.item()


# %%
state = torch.zeros(1, 4)
for t in range(60):
    action = select_action(state, eps=0.3)
    next_state = torch.randn(1, 4)
    memory.append(Transition(state, action, next_state, torch.tensor([float(action.item())]), torch.zeros(1)))
    state = next_state
    optimize_model()
    if t % 20 == 0:
        target_net.load_state_dict(policy_net.state_dict())
print(len(memory))
