"""
Compiles the kernels to PTX, without a GPU: python compile.py FOLDER [JOBS]. Writes NAME.TARGET.ptx and `launches.json`, what a launch
needs. The same sources give the same bytes.
"""
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # paths and lines would be part of the PTX
os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import adapters
import attention
import decode
import head
import optimiser
import rows

# CUDA 13.0 reads PTX up to 9.0, and Triton's default for 9.0 is newer.
PTX_VERSION = 80
TARGETS = {"sm_80": 80, "sm_90a": 90}
BF16, F32, F64, I32, I64 = "*bf16", "*fp32", "*fp64", "*i32", "*i64"
LETTERS = {"i32": "i", "i64": "l", "fp32": "f"}
# Whole numbers that are multiples of 16, so that loads take 16 bytes at a time.
ALIGNED = {"size", "half", "vocabulary", "count", "stride", "out"}
# Kernels for addresses and counts that are no multiples of 16.
ANY = {"adamw_any", "squares_any"}
# Kernels whose products and sums are rounded apart, as JavaScript rounds them.
ROUNDED_APART = {"adamw", "adamw_any"}


NORM_BLOCKS = (1024, 2048, 4096, 8192)


def attention_kernels(d):
    qkv = dict(q=BF16, k=BF16, v=BF16)
    ends = dict(tokens="i32", scale="fp32", H="i32", HK="i32")
    saved = dict(d_out=BF16, lse=F32, delta=F32, spans=I32)
    return {
        f"attention_forward_{d}": (attention.attention_forward, {**qkv, "spans": I32, "out": BF16, "lse": F32, **ends},
                                   dict(D=d, BM=128, BN=64), 8 if d == 128 else 4, {"sm_80": 2, "sm_90a": 3}),
        f"attention_delta_{d}": (attention.attention_delta, dict(out=BF16, d_out=BF16, delta=F32, tokens="i32", H="i32"), dict(D=d, BM=64), 4, 1),
        f"attention_backward_kv_{d}": (attention.attention_backward_kv, {**qkv, **saved, "dk": BF16, "dv": BF16, **ends},
                                       dict(D=d, BM=32 if d == 128 else 64, BN=128), 8, {"sm_80": 1, "sm_90a": 2}),
        f"attention_backward_q_{d}": (attention.attention_backward_q, {**qkv, **saved, "dq": BF16, **ends},
                                      dict(D=d, BM=128, BN=32 if d == 128 else 64), 8, {"sm_80": 1, "sm_90a": 2}),
    }


def norm_kernels(block):
    counts = dict(rows="i32", size="i32", each="i32", continues="i32", adds="i32", trained="i32")
    warps = max(4, block // 512)
    return {
        f"norm_forward_{block}": (rows.norm_forward, dict(x=F32, added=BF16, weight=F32, total=F32, y=BF16, inverse=F32, epsilon="fp32", size="i32", adds="i32"),
                                  dict(BLOCK=block), warps, 1),
        f"norm_backward_{block}": (rows.norm_backward, {**dict(d_y=BF16, x=F32, weight=F32, inverse=F32, d_total=F32, d_x=F32, d_added=BF16, d_weight=F32), **counts},
                                   dict(BLOCK=block), warps, 1),
    }


def decode_kernels():
    sizes = dict(scale="fp32", rows="i32", size="i32")
    joined = dict(x=BF16, stacked=BF16, up=BF16, bias=F32, y=BF16, **sizes, out="i32", rank="i32", first_end="i32", second_end="i32",
                  first_place="i32", second_place="i32", third_place="i32")
    found = {
        f"norm_adapted_{block}": (decode.norm_adapted, dict(x=F32, product=BF16, up=BF16, weight=F32, total=F32, y=BF16, inverse=F32, epsilon="fp32", scale="fp32",
                                                            size="i32", stride="i32", rank="i32"), dict(BLOCK=block), max(4, block // 512), 1)
        for block in NORM_BLOCKS
    }
    found.update({
        "swiglu_joined": (decode.swiglu_joined, dict(product=BF16, up=BF16, out=BF16, **sizes, stride="i32", rank="i32", gate_place="i32", up_place="i32"),
                          dict(BM=16, BN=128), 4, 1),
        # few rows: narrow blocks of columns, so that there are enough of them; many rows: blocks that read less
        "linear_adapted_few": (decode.linear_adapted, joined, dict(BM=64, BN=32, BK=128), 4, {"sm_80": 3, "sm_90a": 4}),
        "linear_adapted_many": (decode.linear_adapted, joined, dict(BM=128, BN=64, BK=64), 8, 3),
        "head_logits": (decode.head_logits, dict(x=F32, scales=F32, inverse=F32, factors=F32, weight=BF16, logits=F32, rows="i32", size="i32", vocabulary="i32"),
                        dict(BM=64, BN=128, BK=64), 8, 3),
    })
    return found


def adapter_kernels():
    of = lambda letter: {f"{letter}{i}": BF16 for i in range(3)}
    sizes = dict(rows="i32", size="i32", rank="i32", three="i32")
    return {
        "downs_forward": (adapters.downs_forward, dict(x=BF16, **of("a"), **of("y"), **sizes), dict(BM=32, BK=128), 4, 3),
        "downs_input": (adapters.downs_input, dict(**of("d"), **of("a"), dx=BF16, **sizes), dict(BM=64, BN=128), 4, 1),
        "downs_matrices": (adapters.downs_matrices, dict(**of("d"), x=BF16, **of("g"), **sizes), dict(BN=32, BK=128), 4, 3),
    }


def kernels():
    """By name: the function, types of its parameters, constants, warps, stages (of each target)."""
    product = dict(BM=128, BN=128, BK=64)
    given = dict(hidden=BF16, weight=BF16, targets=I32, inverse_temperature=F32)
    shape = dict(rows="i32", size="i32", vocabulary="i32")
    found = {}
    for d in (64, 128):
        found.update(attention_kernels(d))
    for block in NORM_BLOCKS:
        found.update(norm_kernels(block))
    found.update(decode_kernels())
    found.update(adapter_kernels())
    stages = {"sm_80": 2, "sm_90a": 3}
    found.update({
        "embedding_gradient": (rows.embedding_gradient, dict(total=F32, d=F32, order=I32, distinct=I32, begins=I32, ends=I32, out=F32, size="i32"),
                               dict(BLOCK=256, ROWS=8), 4, 1),
        "swiglu_forward": (rows.swiglu_forward, dict(gate=BF16, up=BF16, out=BF16, count="i64"), dict(BLOCK=2048), 8, 1),
        "swiglu_backward": (rows.swiglu_backward, dict(d_out=BF16, gate=BF16, up=BF16, d_gate=BF16, d_up=BF16, count="i64"), dict(BLOCK=2048), 8, 1),
        "rotary_turn": (rows.rotary_turn, dict(x=BF16, bias=F32, cos=F32, sin=F32, positions=I64, y=BF16, sign="fp32", heads="i32", half="i32", biased="i32"),
                        dict(HEADS=8, HALF=64), 4, 1),
        "head_forward": (head.head_forward, {**given, "stats": F32, **shape, "per_split": "i32"}, product, 8, stages),
        "head_combine": (head.head_combine, dict(stats=F32, log_probs=F32, entropies=F32, normaliser=F32, rows="i32", splits="i32"), dict(BLOCK=128), 4, 1),
        "head_backward": (head.head_backward, {**given, "normaliser": F32, "entropies": F32, "d_log_prob": F32, "d_entropy": F32, "d_logits": BF16, **shape}, product, 8, stages),
    })
    stepped = dict(weights=F32, gradient=F32, first=F32, second=F32, scalars=F64, new_weights=F32, new_first=F32, new_second=F32, count="i64")
    for of in ("", "_any"):
        found["adamw" + of] = (optimiser.adamw, stepped, dict(BLOCK=1024), 4, 1)
        found["squares" + of] = (optimiser.squares, dict(x=F32, partial=F64, count="i64", each="i32"), dict(BLOCK=1024), 4, 1)
    return found


def compiled(name, target):
    function, types, constants, warps, stages = kernels()[name]
    names = function.arg_names
    signature = {it: "constexpr" if it in constants else types[it] for it in names}
    attrs = {(i,): [["tt.divisibility", 16]] for i, it in enumerate(names) if name not in ANY and (signature[it].startswith("*") or it in ALIGNED)}
    stages = stages if isinstance(stages, int) else stages[target]
    options = dict(num_warps=warps, num_stages=stages, ptx_version=PTX_VERSION, enable_fp_fusion=name not in ROUNDED_APART)
    made = triton.compile(ASTSource(function, signature, constexprs=constants, attrs=attrs), target=GPUTarget("cuda", TARGETS[target], 32), options=options)
    assert "__nv_" not in made.asm["llir"], f"{name} has code of libdevice"
    letters = "".join(LETTERS.get(signature[it], "p") for it in names if it not in constants)
    shared = dict(entry=made.metadata.name, parameters=letters, constants=constants)
    return name, target, made.asm["ptx"], shared, dict(shared=made.metadata.shared, warps=made.metadata.num_warps)


def main(folder, jobs=2):
    os.makedirs(folder, exist_ok=True)
    asked = [(name, target) for name in kernels() for target in TARGETS]
    launches = {}
    with ProcessPoolExecutor(jobs) as pool:
        for name, target, ptx, shared, facts in pool.map(compiled, *zip(*asked)):
            with open(os.path.join(folder, f"{name}.{target}.ptx"), "w") as file:
                file.write(ptx)
            launches.setdefault(name, {**shared, "targets": {}})["targets"][target] = facts
    with open(os.path.join(folder, "launches.json"), "w") as file:
        json.dump(launches, file, indent=2)
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1], *(int(jobs) for jobs in sys.argv[2:]))
