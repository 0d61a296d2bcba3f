"""Hypergradients: three updates are unrolled with create_graph, a learning rate is differentiated through them.
Tempts: graph-retained-in-list, optimizer-of-another-model (only the learning rate is in an optimizer)."""

# %%
import torch

torch.manual_seed(84)
train_x, valid_x = torch.randn(40, 4), torch.randn(40, 4)
truth = torch.randn(4)
train_y, valid_y = train_x @ truth, valid_x @ truth
log_rate = torch.tensor(-5.0, requires_grad=True)
meta = torch.optim.Adam([log_rate], lr=0.3)


def validation_after(steps):
    w = torch.zeros(4, requires_grad=True)
    path = [w]
    for _ in range(steps):
        loss = (train_x @ path[-1] - train_y).square().mean()
        (slope,) = torch.autograd.grad(loss, path[-1], create_graph=True)
        path.append(path[-1] - log_rate.exp() * slope)
    return (valid_x @ path[-1] - valid_y).square().mean()


# %%
for _ in range(12):
    meta.zero_grad()
    loss = validation_after(3)
    loss.backward()
    meta.step()
print(loss.item(), log_rate.exp().item())
