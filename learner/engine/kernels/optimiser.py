"""AdamW (Loshchilov and Hutter 2019) and sums of squares."""
import triton
import triton.language as tl

from elementary import square_root


@triton.jit
def squares(x, partial, count, each, BLOCK: tl.constexpr):
    """partial[program]: the sum of squares of `each` blocks."""
    program = tl.program_id(0).to(tl.int64)
    acc = tl.zeros([BLOCK], tl.float32)
    for i in range(0, each):
        at = (program * each + i) * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(x + at, mask=at < count, other=0.0).to(tl.float32)
        acc += value * value
    tl.store(partial + program, tl.sum(acc, 0))
