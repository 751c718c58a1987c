# needs: torch
# A DataLoader in the process itself, as it has to be where there is one process only.
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.arange(100, dtype=torch.float32).reshape(50, 2), torch.arange(50, dtype=torch.float32))
total = sum((x.sum() * y.mean()).item() for x, y in DataLoader(data, batch_size=8, shuffle=True))
open("submission.csv", "w").write(f"{total:.2f}\n")
