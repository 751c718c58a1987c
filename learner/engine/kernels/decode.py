"""
Linear layers of a decode step with low-rank adapters. `stacked` has a frozen matrix W [out, size] and, below it, the adapters' A
[places * rank, size]; `up` [rank, out] has the transposed B of each column's layer. The product with `stacked` ends with x A^T of each place,
to which these kernels multiply B. Sums are float32.
"""
import triton
import triton.language as tl

from elementary import sigmoid, square_root

RANKS = tl.constexpr(16)
COLUMNS = tl.constexpr(8)


@triton.jit
def norm_adapted(x, product, up, weight, total, y, inverse, epsilon, scale, size, stride, rank, BLOCK: tl.constexpr):
    """total = x + product + scale h B, the residual stream; y = total / rms(total) * weight; inverse = 1 / rms. h follows each row of product."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < size
    given = product + row * stride
    added = tl.zeros([BLOCK], tl.float32)
    for first in range(0, rank, COLUMNS):
        for i in tl.static_range(COLUMNS):
            near = first + i < rank
            h = tl.load(given + size + first + i, mask=near, other=0.0).to(tl.float32)
            added += h * tl.load(up + (first + i) * size + cols, mask=inside & near, other=0.0).to(tl.float32)
    added = added * scale + tl.load(given + cols, mask=inside, other=0.0).to(tl.float32)
    value = tl.load(x + row * size + cols, mask=inside, other=0.0) + added
    tl.store(total + row * size + cols, value, mask=inside)
    inv = 1.0 / square_root(tl.sum(value * value, 0) / size + epsilon)
    w = tl.load(weight + cols, mask=inside, other=0.0)
    tl.store(y + row * size + cols, (value * inv * w).to(y.dtype.element_ty), mask=inside)
    tl.store(inverse + row, inv)


@triton.jit
def swiglu_joined(product, up, out, scale, rows, size, stride, rank, gate_place, up_place, BM: tl.constexpr, BN: tl.constexpr):
    """out = silu(gate) * up of rows that have both, one after the other, and then h of each place; rank 0: there is no adapter."""
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    there = r < rows
    inside = cols < size
    ok = there[:, None] & inside[None, :]
    given = product + r.to(tl.int64)[:, None] * stride
    d_gate = tl.zeros([BM, BN], tl.float32)
    d_up = tl.zeros([BM, BN], tl.float32)
    for first in range(0, rank, RANKS):
        k = first + tl.arange(0, RANKS)
        near = k < rank
        h = given + 2 * size + k[None, :]
        b = up + k.to(tl.int64)[:, None] * (2 * size) + cols[None, :]
        h_ok = there[:, None] & near[None, :]
        b_ok = near[:, None] & inside[None, :]
        d_gate = tl.dot(tl.load(h + gate_place * rank, mask=h_ok, other=0.0), tl.load(b, mask=b_ok, other=0.0), d_gate)
        d_up = tl.dot(tl.load(h + up_place * rank, mask=h_ok, other=0.0), tl.load(b + size, mask=b_ok, other=0.0), d_up)
    g = tl.load(given + cols[None, :], mask=ok, other=0.0).to(tl.float32) + scale * d_gate
    u = tl.load(given + size + cols[None, :], mask=ok, other=0.0).to(tl.float32) + scale * d_up
    at = out + r.to(tl.int64)[:, None] * size + cols[None, :]
    tl.store(at, (g * sigmoid(g) * u).to(out.dtype.element_ty), mask=ok)


@triton.jit
def tile(x, r, there, ks, near, size):
    """x[r, ks], 0 outside."""
    return tl.load(x + r.to(tl.int64)[:, None] * size + ks[None, :], mask=there[:, None] & near[None, :], other=0.0)


@triton.jit
def linear_adapted(x, stacked, up, bias, y, scale, rows, size, out, rank, first_end, second_end, first_place, second_place, third_place,
                   BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """y = x W^T + scale h B + bias of three joined layers, which end at columns first_end, second_end and out; h = x A^T of the layer's place."""
    begin = tl.program_id(0) * BN
    r = tl.program_id(1) * BM + tl.arange(0, BM)
    cols = begin + tl.arange(0, BN)
    there = r < rows
    inside = cols < out
    beyond_first = (begin >= first_end).to(tl.int32)
    beyond_second = (begin >= second_end).to(tl.int32)
    place = first_place + beyond_first * (second_place - first_place) + beyond_second * (third_place - second_place)
    k = tl.arange(0, RANKS)
    below = out + place * rank + k
    acc = tl.zeros([BM, BN], tl.float32)
    h = tl.zeros([BM, RANKS], tl.float32)
    for k0 in range(0, size, BK):
        ks = k0 + tl.arange(0, BK)
        near = ks < size
        a = tile(x, r, there, ks, near, size)
        acc = tl.dot(a, tl.trans(tile(stacked, cols, inside, ks, near, size)), acc)
        h = tl.dot(a, tl.trans(tile(stacked, below, k < rank, ks, near, size)), h)
    near_b = (k < rank)[:, None] & inside[None, :]
    added = tl.dot(h.to(x.dtype.element_ty), tl.load(up + k[:, None] * out + cols[None, :], mask=near_b, other=0.0))
    for first in range(RANKS, rank, RANKS):
        more = tl.zeros([BM, RANKS], tl.float32)
        for k0 in range(0, size, BK):
            ks = k0 + tl.arange(0, BK)
            near = ks < size
            more = tl.dot(tile(x, r, there, ks, near, size), tl.trans(tile(stacked, below + first, first + k < rank, ks, near, size)), more)
        near_b = (first + k < rank)[:, None] & inside[None, :]
        b = tl.load(up + (first + k)[:, None] * out + cols[None, :], mask=near_b, other=0.0)
        added = tl.dot(more.to(x.dtype.element_ty), b, added)
    acc += scale * added + tl.load(bias + cols, mask=inside, other=0.0)[None, :]
    at = y + r.to(tl.int64)[:, None] * out + cols[None, :]
    tl.store(at, acc.to(y.dtype.element_ty), mask=there[:, None] & inside[None, :])


@triton.jit
def head_logits(x, scales, inverse, factors, weight, logits, rows, size, vocabulary, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """
    logits = (x scales inverse) weight^T times each row's factor, in float32: a float32 is the sum of two bfloat16 to 2e-6 of its value, and each
    part of the bfloat16 weight is read once for both.
    """
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    entries = tl.program_id(1) * BN + tl.arange(0, BN)
    there = r < rows
    inside = entries < vocabulary
    acc = tl.zeros([BM, BN], tl.float32)
    for k0 in range(0, size, BK):
        ks = k0 + tl.arange(0, BK)
        near = ks < size
        a = tile(x, r, there, ks, near, size) * tl.load(scales + ks, mask=near, other=0.0)[None, :]
        high = a.to(weight.dtype.element_ty)
        low = (a - high.to(tl.float32)).to(weight.dtype.element_ty)
        w = tl.trans(tile(weight, entries, inside, ks, near, size))
        acc = tl.dot(high, w, acc)
        acc = tl.dot(low, w, acc)
    factor = tl.load(inverse + r, mask=there, other=0.0) * tl.load(factors + r, mask=there, other=0.0)
    at = logits + r.to(tl.int64)[:, None] * vocabulary + entries[None, :]
    tl.store(at, acc * factor[:, None], mask=there[:, None] & inside[None, :])
