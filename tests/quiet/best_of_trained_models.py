"""Two models that are trained first; then a loop looks for the better one and its threshold, and trains nothing.
Tempts: state-dict-alias (`best_model = …` under an `if` of a loop)."""

# %%
import torch
from torch import nn

torch.manual_seed(4)
x = torch.randn(80, 6)
y = (x[:, 0] > 0).float()


def fitted(width):
    net = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(10):
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(net(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
    return net


# %%
small, large = fitted(4), fitted(32)
best_score, best_model, best_threshold = 0.0, None, 0.5
for threshold in (0.3, 0.5, 0.7):
    for model in (small, large):
        with torch.no_grad():
            score = ((model(x).squeeze(1).sigmoid() > threshold) == y).float().mean().item()
        if score > best_score:
            best_score, best_model, best_threshold = score, model, threshold
