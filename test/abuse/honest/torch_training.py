# needs: torch
# A small network on the CPU with two threads, saved and loaded.
import pandas as pd
import torch
torch.manual_seed(0)
torch.set_num_threads(2)
train, test = pd.read_csv("input/train.csv"), pd.read_csv("input/test.csv")
x, y = torch.tensor(train[["a", "b"]].values, dtype=torch.float32), torch.tensor(train["target"].values, dtype=torch.float32)
model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(30):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x).squeeze(1), y)
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")
model.load_state_dict(torch.load("model.pt"))
with torch.no_grad():
    test["target"] = model(torch.tensor(test[["a", "b"]].values, dtype=torch.float32)).squeeze(1).numpy().round(4)
test[["id", "target"]].to_csv("submission.csv", index=False)
