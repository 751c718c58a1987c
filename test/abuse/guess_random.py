# Prints what the random generators give first: no two executions with different seeds may agree.
import random
import numpy as np
print(random.random(), np.random.rand())
