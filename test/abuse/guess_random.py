# Prints the first numbers of the random generators: executions with different seeds must get different numbers.
import random
import numpy as np
print(random.random(), np.random.rand())
