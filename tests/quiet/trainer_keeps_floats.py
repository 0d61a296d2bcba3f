"""A small Trainer class with fit, evaluate and a history of floats; modes and no_grad live inside its methods.
Tempts: graph-retained-in-list (a list named losses that grows all the time)."""

# %%
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    """Fits a regression and remembers one number per batch and per epoch."""

    def __init__(self, model, learning_rate):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
        self.losses, self.validation = [], []

    def fit(self, train_loader, valid_loader, epochs):
        for _ in range(epochs):
            self.model.train()
            for batch in train_loader:
                self.losses.append(self._training_step(*batch))
            self.validation.append(self.evaluate(valid_loader))

    def _training_step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        squared = sum(nn.functional.mse_loss(self.model(x), y, reduction="sum").item() for x, y in loader)
        return squared / len(loader.dataset)


# %%
torch.manual_seed(32)
flour = torch.randn(220, 5)
crumb = (flour @ torch.randn(5, 2)).tanh()
train_loader = DataLoader(TensorDataset(flour[:160], crumb[:160]), batch_size=32, shuffle=True)
valid_loader = DataLoader(TensorDataset(flour[160:], crumb[160:]), batch_size=60)
bakery = nn.Sequential(nn.Linear(5, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
trainer = Trainer(bakery, learning_rate=1e-2)

# %%
trainer.fit(train_loader, valid_loader, epochs=4)
print(trainer.validation)

# %%
trainer.fit(train_loader, valid_loader, epochs=2)
trainer.evaluate(valid_loader)
