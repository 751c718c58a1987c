"""AdamW (Loshchilov and Hutter 2019) and sums of squares, in float64 from and to float32, one pass over memory each."""
import triton
import triton.language as tl

from elementary import square_root_64


@triton.jit
def adamw(weights, gradient, first, second, scalars, new_weights, new_first, new_second, count, BLOCK: tl.constexpr):
    """
    The operations of learner/engine/adamw.ts in their order, so that the bits are the same. scalars: scale, beta1, 1 - beta1, beta2,
    1 - beta2, step size, epsilon, decay. Outputs may be the inputs.
    """
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    scale = tl.load(scalars)
    beta1 = tl.load(scalars + 1)
    gradient_share = tl.load(scalars + 2)
    beta2 = tl.load(scalars + 3)
    square_share = tl.load(scalars + 4)
    step_size = tl.load(scalars + 5)
    epsilon = tl.load(scalars + 6)
    decay = tl.load(scalars + 7)
    w = tl.load(weights + at, mask=inside, other=0.0).to(tl.float64)
    g = tl.load(gradient + at, mask=inside, other=0.0).to(tl.float64) * scale
    m = beta1 * tl.load(first + at, mask=inside, other=0.0).to(tl.float64) + gradient_share * g
    v = beta2 * tl.load(second + at, mask=inside, other=0.0).to(tl.float64) + square_share * g * g
    w = w * decay - step_size * m / (square_root_64(v) + epsilon)
    tl.store(new_first + at, m.to(tl.float32), mask=inside)
    tl.store(new_second + at, v.to(tl.float32), mask=inside)
    tl.store(new_weights + at, w.to(tl.float32), mask=inside)


@triton.jit
def squares(x, partial, count, each, BLOCK: tl.constexpr):
    """partial[program]: the sum of squares of `each` blocks, float64."""
    program = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], tl.float64)
    for i in range(0, each):
        at = (program * each + i) * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(x + at, mask=at < count, other=0.0).to(tl.float64)
        total += value * value
    tl.store(partial + program, tl.sum(total, 0))
