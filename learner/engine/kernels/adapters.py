"""The A of two or three adapters that share an input, in training: x, and each of its cotangents, is read or written once for all of them."""
import triton
import triton.language as tl

RANKS = tl.constexpr(16)


@triton.jit
def tile(x, r, there, c, inside, width):
    """x[r, c] of rows of this width, 0 outside."""
    return tl.load(x + r.to(tl.int64)[:, None] * width + c[None, :], mask=there[:, None] & inside[None, :], other=0.0)


@triton.jit
def put(x, value, r, there, c, inside, width):
    at = x + r.to(tl.int64)[:, None] * width + c[None, :]
    tl.store(at, value.to(x.dtype.element_ty), mask=there[:, None] & inside[None, :])


@triton.jit
def downs_forward(x, a0, a1, a2, y0, y1, y2, rows, size, rank, three, BM: tl.constexpr, BK: tl.constexpr):
    """y = x A^T [rows, rank] of each A [rank, size]."""
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    k = tl.program_id(1) * RANKS + tl.arange(0, RANKS)
    there = r < rows
    near = k < rank
    third = near & (three != 0)
    s0 = tl.zeros([BM, RANKS], tl.float32)
    s1 = tl.zeros([BM, RANKS], tl.float32)
    s2 = tl.zeros([BM, RANKS], tl.float32)
    for first in range(0, size, BK):
        c = first + tl.arange(0, BK)
        inside = c < size
        a = tile(x, r, there, c, inside, size)
        s0 = tl.dot(a, tl.trans(tile(a0, k, near, c, inside, size)), s0)
        s1 = tl.dot(a, tl.trans(tile(a1, k, near, c, inside, size)), s1)
        s2 = tl.dot(a, tl.trans(tile(a2, k, third, c, inside, size)), s2)
    put(y0, s0, r, there, k, near, rank)
    put(y1, s1, r, there, k, near, rank)
    put(y2, s2, r, there, k, third, rank)


@triton.jit
def downs_input(d0, d1, d2, a0, a1, a2, dx, rows, size, rank, three, BM: tl.constexpr, BN: tl.constexpr):
    """dx [rows, size]: the sum of d A of all."""
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    there = r < rows
    inside = c < size
    acc = tl.zeros([BM, BN], tl.float32)
    for first in range(0, rank, RANKS):
        k = first + tl.arange(0, RANKS)
        near = k < rank
        third = near & (three != 0)
        acc = tl.dot(tile(d0, r, there, k, near, rank), tile(a0, k, near, c, inside, size), acc)
        acc = tl.dot(tile(d1, r, there, k, near, rank), tile(a1, k, near, c, inside, size), acc)
        acc = tl.dot(tile(d2, r, there, k, third, rank), tile(a2, k, third, c, inside, size), acc)
    put(dx, acc, r, there, c, inside, size)


@triton.jit
def downs_matrices(d0, d1, d2, x, g0, g1, g2, rows, size, rank, three, BN: tl.constexpr, BK: tl.constexpr):
    """The gradient d^T x [rank, size] of each A. A program has all rows, in their order."""
    c = tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.program_id(1) * RANKS + tl.arange(0, RANKS)
    inside = c < size
    near = k < rank
    third = near & (three != 0)
    s0 = tl.zeros([RANKS, BN], tl.float32)
    s1 = tl.zeros([RANKS, BN], tl.float32)
    s2 = tl.zeros([RANKS, BN], tl.float32)
    for first in range(0, rows, BK):
        r = first + tl.arange(0, BK)
        there = r < rows
        a = tile(x, r, there, c, inside, size)
        s0 = tl.dot(tl.trans(tile(d0, r, there, k, near, rank)), a, s0)
        s1 = tl.dot(tl.trans(tile(d1, r, there, k, near, rank)), a, s1)
        s2 = tl.dot(tl.trans(tile(d2, r, there, k, third, rank)), a, s2)
    put(g0, s0, k, near, c, inside, size)
    put(g1, s1, k, near, c, inside, size)
    put(g2, s2, k, third, c, inside, size)
