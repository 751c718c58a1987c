# Classes of __main__ that are pickled and copied, decorators, generators, context managers.
import copy, contextlib, pickle
class Model:
    def __init__(self, weight):
        self.weight = weight
    def __call__(self, x):
        return self.weight * x
@contextlib.contextmanager
def doubled(model):
    model.weight *= 2
    yield model
    model.weight /= 2
model = pickle.loads(pickle.dumps(copy.deepcopy(Model(3))))
with doubled(model) as changed:
    values = list(changed(x) for x in range(5))
open("submission.csv", "w").write(f"{values} {model.weight}\n")
