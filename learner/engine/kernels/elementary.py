"""Elementary functions by one instruction each, so that no code of libdevice is part of the PTX."""
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)


@triton.jit
def exp2(x):
    return tl.inline_asm_elementwise("ex2.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def log2(x):
    return tl.inline_asm_elementwise("lg2.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def square_root(x):
    return tl.inline_asm_elementwise("sqrt.rn.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def square_root_64(x):
    return tl.inline_asm_elementwise("sqrt.rn.f64 $0, $1;", "=d,d", [x], dtype=tl.float64, is_pure=True, pack=1)


@triton.jit
def sigmoid(x):
    return 1.0 / (1.0 + exp2(-x * LOG2E))
