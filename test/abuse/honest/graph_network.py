# needs: torch_geometric
# Two graph convolutions, trained on a ring with chords, in batches.
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv
torch.manual_seed(0)
torch.set_num_threads(1)
nodes = torch.arange(12)
edges = torch.stack([torch.cat([nodes, nodes]), torch.cat([(nodes + 1) % 12, (nodes + 5) % 12])])
graphs = [Data(x=torch.randn(12, 3), edge_index=edges, y=(nodes % 2).float()) for _ in range(8)]
first, second = GCNConv(3, 8), GCNConv(8, 1)
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01)
for _ in range(3):
    for batch in DataLoader(graphs, batch_size=4):
        optimizer.zero_grad()
        out = second(first(batch.x, batch.edge_index).relu(), batch.edge_index).squeeze(1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(out, batch.y)
        loss.backward()
        optimizer.step()
open("submission.csv", "w").write(f"{loss.item():.4f}\n")
