"""Flash attention (Dao et al. 2022, 2023), forward and backward, for rows of tokens that share prompts.

Tokens of all rows stand one after the other: q [tokens, H * D], k and v [tokens, HK * D]. Key k is seen by the queries q with
k <= q < ends[k]. `spans` int32 [4, tokens] has `ends` and, for a query, the keys that it may see: begins <= k < prompts and
starts <= k <= q. Blocks of keys outside of these are left out; `ends` alone decides within a block.
"""
import triton
import triton.language as tl

from elementary import LOG2E, exp2, log2

MASKED = tl.constexpr(-1e30)


@triton.jit
def key_blocks(spans, tokens, first, BM: tl.constexpr, BN: tl.constexpr):
    """The key blocks of a block of queries: `before` blocks from block `low` on, then blocks from block `own` on; `count` of both."""
    last = tl.minimum(first + BM, tokens)
    begin = tl.load(spans + tokens + first)
    prompt = tl.load(spans + 2 * tokens + first)
    start = tl.load(spans + 3 * tokens + first)
    low = begin // BN
    before = tl.maximum(tl.cdiv(prompt, BN) - low, 0)
    own = tl.maximum(low + before, start // BN)
    return low, before, own, before + tl.maximum(tl.cdiv(last, BN) - own, 0)


@triton.jit
def attention_forward(q, k, v, spans, out, lse, tokens, scale, H, HK, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """out = softmax(scale q k^T) v; lse [H, tokens]: log2 of a row's sum of exponentials."""
    first = tl.program_id(0) * BM
    h = tl.program_id(1)
    hk = h // (H // HK)
    rows = first + tl.arange(0, BM)
    dims = tl.arange(0, D)
    inside = rows < tokens
    at = rows.to(tl.int64)[:, None] * (H * D) + h * D + dims[None, :]
    qt = tl.load(q + at, mask=inside[:, None], other=0.0)
    low, before, own, count = key_blocks(spans, tokens, first, BM, BN)
    top = tl.full([BM], MASKED, tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for i in range(0, count):
        cols = tl.where(i < before, low + i, own + i - before) * BN + tl.arange(0, BN)
        there = cols < tokens
        place = cols.to(tl.int64)[:, None] * (HK * D) + hk * D + dims[None, :]
        kt = tl.load(k + place, mask=there[:, None], other=0.0)
        vt = tl.load(v + place, mask=there[:, None], other=0.0)
        end = tl.load(spans + cols, mask=there, other=0)
        s = tl.dot(qt, tl.trans(kt)) * (scale * LOG2E)
        seen = (cols[None, :] <= rows[:, None]) & (rows[:, None] < end[None, :])
        s = tl.where(seen, s, MASKED)
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.where(seen, exp2(s - new[:, None]), 0.0)
        keep = exp2(top - new)
        total = total * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p.to(vt.dtype), vt)
        top = new
    safe = tl.where(total > 0, total, 1.0)
    tl.store(out + at, (acc / safe[:, None]).to(out.dtype.element_ty), mask=inside[:, None])
    tl.store(lse + h.to(tl.int64) * tokens + rows, tl.where(total > 0, top + log2(safe), 0.0), mask=inside)


@triton.jit
def attention_delta(out, d_out, delta, tokens, H, D: tl.constexpr, BM: tl.constexpr):
    """delta [H, tokens]: row sums of out * d_out, which are the row sums of P * dP."""
    h = tl.program_id(1)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    inside = rows < tokens
    at = rows.to(tl.int64)[:, None] * (H * D) + h * D + tl.arange(0, D)[None, :]
    o = tl.load(out + at, mask=inside[:, None], other=0.0).to(tl.float32)
    d = tl.load(d_out + at, mask=inside[:, None], other=0.0).to(tl.float32)
    tl.store(delta + h.to(tl.int64) * tokens + rows, tl.sum(o * d, 1), mask=inside)


@triton.jit
def attention_backward_kv(q, k, v, d_out, lse, delta, spans, dk, dv, tokens, scale, H, HK,
                          D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """dk and dv of one block of keys and one key head: its query heads are summed here, so no two programs add to one place."""
    first = tl.program_id(0) * BN
    hk = tl.program_id(1)
    groups = H // HK
    cols = first + tl.arange(0, BN)
    there = cols < tokens
    dims = tl.arange(0, D)
    at = cols.to(tl.int64)[:, None] * (HK * D) + hk * D + dims[None, :]
    kt = tl.load(k + at, mask=there[:, None], other=0.0)
    vt = tl.load(v + at, mask=there[:, None], other=0.0)
    end = tl.load(spans + cols, mask=there, other=0)
    low = first // BM
    blocks = tl.maximum(tl.cdiv(tl.max(end, 0), BM) - low, 0)
    dk_acc = tl.zeros([BN, D], tl.float32)
    dv_acc = tl.zeros([BN, D], tl.float32)
    for i in range(0, groups * blocks):
        h = hk * groups + i // blocks
        rows = (low + i % blocks) * BM + tl.arange(0, BM)
        inside = rows < tokens
        place = rows.to(tl.int64)[:, None] * (H * D) + h * D + dims[None, :]
        qt = tl.load(q + place, mask=inside[:, None], other=0.0)
        dt = tl.load(d_out + place, mask=inside[:, None], other=0.0)
        row = h.to(tl.int64) * tokens + rows
        l = tl.load(lse + row, mask=inside, other=0.0)
        dl = tl.load(delta + row, mask=inside, other=0.0)
        st = tl.dot(kt, tl.trans(qt)) * (scale * LOG2E)
        seen = (cols[:, None] <= rows[None, :]) & (rows[None, :] < end[:, None])
        pt = tl.where(seen, exp2(tl.minimum(st - l[None, :], 0.0)), 0.0)
        dv_acc += tl.dot(pt.to(dt.dtype), dt)
        dst = pt * (tl.dot(vt, tl.trans(dt)) - dl[None, :])
        dk_acc += tl.dot(dst.to(qt.dtype), qt)
    tl.store(dk + at, (dk_acc * scale).to(dk.dtype.element_ty), mask=there[:, None])
    tl.store(dv + at, dv_acc.to(dv.dtype.element_ty), mask=there[:, None])


@triton.jit
def attention_backward_q(q, k, v, d_out, lse, delta, spans, dq, tokens, scale, H, HK,
                         D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    first = tl.program_id(0) * BM
    h = tl.program_id(1)
    hk = h // (H // HK)
    rows = first + tl.arange(0, BM)
    dims = tl.arange(0, D)
    inside = rows < tokens
    at = rows.to(tl.int64)[:, None] * (H * D) + h * D + dims[None, :]
    qt = tl.load(q + at, mask=inside[:, None], other=0.0)
    dt = tl.load(d_out + at, mask=inside[:, None], other=0.0)
    row = h.to(tl.int64) * tokens + rows
    l = tl.load(lse + row, mask=inside, other=0.0)
    dl = tl.load(delta + row, mask=inside, other=0.0)
    low, before, own, count = key_blocks(spans, tokens, first, BM, BN)
    acc = tl.zeros([BM, D], tl.float32)
    for i in range(0, count):
        cols = tl.where(i < before, low + i, own + i - before) * BN + tl.arange(0, BN)
        there = cols < tokens
        place = cols.to(tl.int64)[:, None] * (HK * D) + hk * D + dims[None, :]
        kt = tl.load(k + place, mask=there[:, None], other=0.0)
        vt = tl.load(v + place, mask=there[:, None], other=0.0)
        end = tl.load(spans + cols, mask=there, other=0)
        s = tl.dot(qt, tl.trans(kt)) * (scale * LOG2E)
        seen = (cols[None, :] <= rows[:, None]) & (rows[:, None] < end[None, :])
        p = tl.where(seen, exp2(tl.minimum(s - l[:, None], 0.0)), 0.0)
        ds = p * (tl.dot(dt, tl.trans(vt)) - dl[:, None])
        acc += tl.dot(ds.to(kt.dtype), kt)
    tl.store(dq + at, (acc * scale).to(dq.dtype.element_ty), mask=inside[:, None])
