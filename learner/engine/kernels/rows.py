"""Kernels that work on rows of numbers: norms, gates, rotary positions."""
import triton
import triton.language as tl

from elementary import sigmoid, square_root


@triton.jit
def norm_forward(x, added, weight, total, y, inverse, epsilon, size, adds, BLOCK: tl.constexpr):
    """total = x + added, the residual stream (float32), if `adds`; y = total / rms(total) * weight; inverse = 1 / rms."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < size
    value = tl.load(x + row * size + cols, mask=inside, other=0.0)
    if adds != 0:
        value += tl.load(added + row * size + cols, mask=inside, other=0.0).to(tl.float32)
        tl.store(total + row * size + cols, value, mask=inside)
    inv = 1.0 / square_root(tl.sum(value * value, 0) / size + epsilon)
    w = tl.load(weight + cols, mask=inside, other=0.0)
    tl.store(y + row * size + cols, (value * inv * w).to(y.dtype.element_ty), mask=inside)
    tl.store(inverse + row, inv)


@triton.jit
def norm_backward(d_y, x, weight, inverse, d_total, d_x, d_added, d_weight, rows, size, each, continues, adds, trained,
                  BLOCK: tl.constexpr):
    """
    d_x = the norm's gradient, and d_total if the stream `continues`; d_added: the same in bfloat16, if the forward pass `adds`;
    d_weight, if `trained`: a partial sum of each program's `each` rows.
    """
    program = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < size
    w = tl.load(weight + cols, mask=inside, other=0.0)
    acc = tl.zeros([BLOCK], tl.float32)
    first = program * each
    for r in range(first, tl.minimum(first + each, rows)):
        at = r.to(tl.int64) * size + cols
        d = tl.load(d_y + at, mask=inside, other=0.0).to(tl.float32)
        inv = tl.load(inverse + r)
        n = tl.load(x + at, mask=inside, other=0.0) * inv
        mean = tl.sum(d * w * n, 0) / size
        dx = (d * w - n * mean) * inv
        if continues != 0:
            dx += tl.load(d_total + at, mask=inside, other=0.0)
        tl.store(d_x + at, dx, mask=inside)
        if adds != 0:
            tl.store(d_added + at, dx.to(d_added.dtype.element_ty), mask=inside)
        acc += d * n
    if trained != 0:
        tl.store(d_weight + program.to(tl.int64) * size + cols, acc, mask=inside)


@triton.jit
def swiglu_forward(gate, up, out, count, BLOCK: tl.constexpr):
    """out = silu(gate) * up"""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    g = tl.load(gate + at, mask=inside, other=0.0).to(tl.float32)
    u = tl.load(up + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + at, (g * sigmoid(g) * u).to(out.dtype.element_ty), mask=inside)


@triton.jit
def swiglu_backward(d_out, gate, up, d_gate, d_up, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    d = tl.load(d_out + at, mask=inside, other=0.0).to(tl.float32)
    g = tl.load(gate + at, mask=inside, other=0.0).to(tl.float32)
    u = tl.load(up + at, mask=inside, other=0.0).to(tl.float32)
    s = sigmoid(g)
    tl.store(d_gate + at, (d * u * (s + g * s * (1.0 - s))).to(d_gate.dtype.element_ty), mask=inside)
    tl.store(d_up + at, (d * g * s).to(d_up.dtype.element_ty), mask=inside)


@triton.jit
def rotary_turn(x, bias, cos, sin, positions, y, sign, heads, half, biased, HEADS: tl.constexpr, HALF: tl.constexpr):
    """y = x + bias turned by the angle of the token's position, halves of a head apart, in float32; sign -1 turns back (the gradient)."""
    token = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    i = tl.arange(0, HALF)
    ok = (h < heads)[:, None] & (i < half)[None, :]
    of_head = h[:, None] * (2 * half) + i[None, :]
    at = token * (2 * half) * heads + of_head
    a = tl.load(x + at, mask=ok, other=0.0).to(tl.float32)
    b = tl.load(x + at + half, mask=ok, other=0.0).to(tl.float32)
    if biased != 0:
        a += tl.load(bias + of_head, mask=ok, other=0.0)
        b += tl.load(bias + of_head + half, mask=ok, other=0.0)
    angle = tl.load(positions + token) * half + i
    c = tl.load(cos + angle, mask=i < half, other=0.0)[None, :]
    s = tl.load(sin + angle, mask=i < half, other=0.0)[None, :] * sign
    tl.store(y + at, (a * c - b * s).to(y.dtype.element_ty), mask=ok)
    tl.store(y + at + half, (b * c + a * s).to(y.dtype.element_ty), mask=ok)


@triton.jit
def embedding_gradient(total, d, order, distinct, begins, ends, out, size, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """
    out[id] = total[id] + the sum of d over the places of each distinct id, which are order[begin] to order[end - 1]. One program has all places of
    an id, and adds them in their order.
    """
    run = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = cols < size
    end = tl.load(ends + run)
    acc = tl.zeros([BLOCK], tl.float32)
    for first in range(tl.load(begins + run), end, ROWS):
        t = first + tl.arange(0, ROWS)
        near = t < end
        place = tl.load(order + t, mask=near, other=0).to(tl.int64)
        acc += tl.sum(tl.load(d + place[:, None] * size + cols[None, :], mask=near[:, None] & inside[None, :], other=0.0), 0)
    at = tl.load(distinct + run).to(tl.int64) * size + cols
    tl.store(out + at, tl.load(total + at, mask=inside, other=0.0) + acc, mask=inside)
