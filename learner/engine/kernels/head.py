"""Log-probs and entropies of tokens over a vocabulary, whose logits are never stored."""
import triton
import triton.language as tl

from elementary import LN2, LOG2E, exp2, log2

NOTHING = tl.constexpr(-1e30)


@triton.jit
def logits_of(hidden, weight, r, inside, entries, there, size, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """hidden weight^T of a block of rows and a block of entries, float32 [BM, BN]."""
    logits = tl.zeros([BM, BN], tl.float32)
    for k0 in range(0, size, BK):
        ks = k0 + tl.arange(0, BK)
        near = ks < size
        a = tl.load(hidden + r.to(tl.int64)[:, None] * size + ks[None, :], mask=inside[:, None] & near[None, :], other=0.0)
        w = tl.load(weight + entries.to(tl.int64)[:, None] * size + ks[None, :], mask=there[:, None] & near[None, :], other=0.0)
        logits = tl.dot(a, tl.trans(w), logits)
    return logits


@triton.jit
def head_forward(hidden, weight, targets, inverse_temperature, stats, rows, size, vocabulary, per_split,
                 BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """stats [splits, 4, rows] of a part of the vocabulary: largest logit m, sums of e^u and u e^u with u = logit - m, the target's logit or 0."""
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    split = tl.program_id(1)
    inside = r < rows
    target = tl.load(targets + r, mask=inside, other=-1)
    factor = tl.load(inverse_temperature)
    top = tl.full([BM], NOTHING, tl.float32)
    s = tl.zeros([BM], tl.float32)
    t = tl.zeros([BM], tl.float32)
    chosen = tl.zeros([BM], tl.float32)
    begin = split * per_split
    stop = tl.minimum(begin + per_split, vocabulary)
    for v0 in range(begin, stop, BN):
        entries = v0 + tl.arange(0, BN)
        there = entries < stop
        logits = logits_of(hidden, weight, r, inside, entries, there, size, BM, BN, BK) * factor
        chosen += tl.sum(tl.where((entries[None, :] == target[:, None]) & there[None, :], logits, 0.0), 1)
        new = tl.maximum(top, tl.max(tl.where(there[None, :], logits, NOTHING), 1))
        u = tl.where(there[None, :], logits - new[:, None], 0.0)
        e = tl.where(there[None, :], exp2(u * LOG2E), 0.0)
        shift = tl.where(s > 0, top - new, 0.0)
        keep = exp2(shift * LOG2E)
        t = keep * (t + shift * s) + tl.sum(u * e, 1)
        s = keep * s + tl.sum(e, 1)
        top = new
    at = stats + split.to(tl.int64) * 4 * rows + r
    tl.store(at, top, mask=inside)
    tl.store(at + rows, s, mask=inside)
    tl.store(at + 2 * rows, t, mask=inside)
    tl.store(at + 3 * rows, chosen, mask=inside)


@triton.jit
def head_combine(stats, log_probs, entropies, normaliser, rows, splits, BLOCK: tl.constexpr):
    """Joins the statistics of all splits in their order."""
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = r < rows
    top = tl.full([BLOCK], NOTHING, tl.float32)
    s = tl.zeros([BLOCK], tl.float32)
    t = tl.zeros([BLOCK], tl.float32)
    chosen = tl.zeros([BLOCK], tl.float32)
    for split in range(0, splits):
        at = stats + split.to(tl.int64) * 4 * rows + r
        m = tl.load(at, mask=inside, other=NOTHING)
        si = tl.load(at + rows, mask=inside, other=0.0)
        ti = tl.load(at + 2 * rows, mask=inside, other=0.0)
        chosen += tl.load(at + 3 * rows, mask=inside, other=0.0)
        new = tl.maximum(top, m)
        old = tl.where(s > 0, top - new, 0.0)
        other = tl.where(si > 0, m - new, 0.0)
        a = exp2(old * LOG2E)
        b = exp2(other * LOG2E)
        t = a * (t + old * s) + b * (ti + other * si)
        s = a * s + b * si
        top = new
    safe = tl.where(s > 0, s, 1.0)
    total = log2(safe) * LN2
    tl.store(log_probs + r, chosen - top - total, mask=inside)
    tl.store(entropies + r, total - t / safe, mask=inside)
    tl.store(normaliser + r, top + total, mask=inside)


@triton.jit
def head_backward(hidden, weight, targets, inverse_temperature, normaliser, entropies, d_log_prob, d_entropy, d_logits, rows, size, vocabulary,
                  BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """d_logits [rows, vocabulary] before the temperature: d (onehot - p) - d_H p (log p + H), times 1 / temperature."""
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    entries = tl.program_id(1) * BN + tl.arange(0, BN)
    inside = r < rows
    there = entries < vocabulary
    factor = tl.load(inverse_temperature)
    logits = logits_of(hidden, weight, r, inside, entries, there, size, BM, BN, BK) * factor
    z = tl.load(normaliser + r, mask=inside, other=0.0)
    entropy = tl.load(entropies + r, mask=inside, other=0.0)
    d = tl.load(d_log_prob + r, mask=inside, other=0.0)
    dh = tl.load(d_entropy + r, mask=inside, other=0.0)
    target = tl.load(targets + r, mask=inside, other=-1)
    log_p = tl.minimum(logits - z[:, None], 0.0)
    g = -exp2(log_p * LOG2E) * (d[:, None] + dh[:, None] * (log_p + entropy[:, None]))
    g += tl.where(entries[None, :] == target[:, None], d[:, None], 0.0)
    at = d_logits + r.to(tl.int64)[:, None] * vocabulary + entries[None, :]
    tl.store(at, (g * factor).to(d_logits.dtype.element_ty), mask=inside[:, None] & there[None, :])
