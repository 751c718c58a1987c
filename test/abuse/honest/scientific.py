# scipy: optimisation, interpolation, sparse matrices, statistics, a linear algebra of LAPACK.
import numpy as np
from scipy import interpolate, linalg, optimize, sparse, stats
from scipy.sparse.linalg import spsolve
found = optimize.minimize(lambda x: (x[0] - 1) ** 2 + (x[1] + 2) ** 2, [0, 0])
curve = interpolate.CubicSpline(np.arange(5), np.arange(5) ** 2)
matrix = sparse.diags([2.0] * 50, format="csc") + sparse.eye(50, format="csc")
values = [*found.x.round(3), float(curve(2.5)), spsolve(matrix, np.ones(50)).sum(), stats.ttest_1samp(np.arange(10), 4).pvalue,
          linalg.det(np.array([[2.0, 1.0], [1.0, 3.0]]))]
open("submission.csv", "w").write("\n".join(f"{value:.4f}" for value in values))
