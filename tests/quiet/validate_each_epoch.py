"""The textbook loop over two cells of functions: train() on entry of training, eval() and no_grad in validation.
Tempts: train-not-restored (validate() leaves eval mode behind), eval-missing."""

# %%
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Leaves(Dataset):
    """Noisy outlines of three kinds of leaf."""

    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.kind = torch.randint(0, 3, (count,), generator=generator)
        self.outline = torch.randn(count, 1, 24, generator=generator) + self.kind.view(-1, 1, 1) * 0.4

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, index):
        return self.outline[index], self.kind[index]


# %%
def train_one_epoch(model, loader, optimizer, criterion):
    model.train()
    for outline, kind in loader:
        optimizer.zero_grad()
        loss = criterion(model(outline), kind)
        loss.backward()
        optimizer.step()


def validate(model, loader, criterion):
    model.eval()
    loss_sum, right = 0.0, 0
    with torch.no_grad():
        for outline, kind in loader:
            logits = model(outline)
            loss_sum += criterion(logits, kind).item() * len(kind)
            right += (logits.argmax(1) == kind).sum().item()
    return loss_sum / len(loader.dataset), right / len(loader.dataset)


# %%
torch.manual_seed(33)
train_loader = DataLoader(Leaves(120, seed=1), batch_size=24, shuffle=True)
valid_loader = DataLoader(Leaves(48, seed=2), batch_size=48)
model = nn.Sequential(
    nn.Conv1d(1, 8, 5), nn.BatchNorm1d(8), nn.ReLU(), nn.Flatten(), nn.Dropout(0.3), nn.Linear(160, 3)
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
criterion = nn.CrossEntropyLoss()

# %%
for epoch in range(4):
    train_one_epoch(model, train_loader, optimizer, criterion)
    loss, accuracy = validate(model, valid_loader, criterion)
    scheduler.step()
    print(f"epoch {epoch}: validation loss {loss:.3f}, accuracy {accuracy:.2f}")

# %%
validate(model, valid_loader, criterion)
