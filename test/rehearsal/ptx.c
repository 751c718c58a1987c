/*
 * Executes PTX (ptx.h) on the host. The threads of a block run in step, one instruction for all of them; where they diverge, the threads
 * with the lowest place run first. So races, missing barriers and missing waits are not seen.
 */
#include "ptx.h"
#include "rehearsal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WARP = 32, WARP_GROUP = 128 };

struct block {
  const struct ptx *kernel;
  int threads;
  uint64_t *registers; /* [register][thread] */
  unsigned char *active;
  unsigned char *shared;
  size_t shared_bytes;
};

static inline float float_of(uint64_t bits) {
  uint32_t low = bits;
  float value;
  memcpy(&value, &low, 4);
  return value;
}
static inline uint64_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}
static inline double double_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, 8);
  return value;
}
static inline uint64_t bits_of_double(double value) {
  uint64_t bits;
  memcpy(&bits, &value, 8);
  return bits;
}
static inline float bfloat16(uint32_t bits) { return float_of(bits << 16); }
static inline uint32_t rounded(float value) {
  uint32_t bits = bits_of(value);
  if (value != value) return 0x7fff;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16 & 0xffff;
}
static inline uint64_t masked(uint64_t bits, int bytes) { return bytes == 8 ? bits : bits & ((1ull << 8 * bytes) - 1); }
static inline int64_t whole(uint64_t bits, struct ptx_type type) {
  if (type.kind == 's') return type.size == 2 ? (int16_t)bits : type.size == 4 ? (int32_t)bits : (int64_t)bits;
  return masked(bits, type.size);
}

static inline uint64_t read(const struct block *it, const struct instruction *in, int i, int thread) {
  const struct ptx_operand *operand = &in->operand[i];
  return operand->reg < 0 ? operand->number : it->registers[(size_t)operand->reg * it->threads + thread];
}
static inline void write(const struct block *it, const struct instruction *in, int i, int thread, uint64_t value) {
  it->registers[(size_t)in->operand[i].reg * it->threads + thread] = value;
}

/* The shared memory at an address, which `bytes` must fit. */
static inline unsigned char *in_shared(const struct block *it, uint32_t address, int bytes) {
  if ((size_t)address + bytes > it->shared_bytes) end_process("a kernel's access beyond its shared memory");
  return it->shared + address;
}

#define EACH for (int t = 0; t < it->threads; t++) if (it->active[t])
#define R(i) read(it, in, i, t)
#define W(i, value) write(it, in, i, t, value)
#define I(i) whole(R(i), in->type)
#define U(i) ((uint64_t)I(i))
#define F(i) float_of(R(i))
#define WHOLE(value) masked((uint64_t)(value), in->type.size)

static void move(const struct block *it, const struct instruction *in) {
  int to = in->list[0], from = in->list[1];
  if (to > 1) {
    int bits = 8 * in->type.size / to;
    EACH {
      uint64_t value = R(to);
      for (int i = 0; i < to; i++) W(i, value >> bits * i & ((1ull << bits) - 1));
    }
  } else if (from > 1) {
    int bits = 8 * in->type.size / from;
    EACH {
      uint64_t value = 0;
      for (int i = 0; i < from; i++) value |= (R(1 + i) & ((1ull << bits) - 1)) << bits * i;
      W(0, value);
    }
  } else
    EACH W(0, in->type.kind == 'p' ? R(1) & 1 : WHOLE(R(1)));
}

static void multiply(const struct block *it, const struct instruction *in) {
  EACH {
    if (in->type.kind == 'f') {
      W(0, bits_of(F(1) * F(2)));
      continue;
    }
    __int128 value = (__int128)I(1) * I(2);
    struct ptx_type result = in->type;
    if (in->mode == WIDE) result.size *= 2;
    if (in->mode == HIGH) value >>= 8 * in->type.size;
    if (in->kind == MAD) value += whole(R(3), result);
    W(0, masked((uint64_t)value, result.size));
  }
}

static void compare(const struct block *it, const struct instruction *in) {
  EACH {
    int less, equal, unordered = 0;
    if (in->type.kind == 'f') less = F(1) < F(2), equal = F(1) == F(2), unordered = F(1) != F(1) || F(2) != F(2);
    else if (in->type.kind == 's') less = I(1) < I(2), equal = I(1) == I(2);
    else less = U(1) < U(2), equal = U(1) == U(2);
    int greater = !less && !equal && !unordered;
    int result[] = {[LT] = less, [LE] = less || equal, [GT] = greater, [GE] = greater || equal, [EQ] = equal, [NE] = !equal};
    W(0, result[in->mode]);
  }
}

static void convert(const struct block *it, const struct instruction *in) {
  struct ptx_type to = in->to, from = in->type;
  EACH {
    if (to.kind == 'H') W(0, rounded(F(1)) << 16 | rounded(F(2)));
    else if (to.kind == 'h') W(0, rounded(F(1)));
    else if (from.kind == 'h') W(0, (R(1) & 0xffff) << 16);
    else if (to.kind == 'f' && from.kind == 'f') W(0, to.size == 8 ? bits_of_double(F(1)) : bits_of(double_of(R(1))));
    else if (to.kind == 'f') W(0, bits_of(from.kind == 'u' ? (float)U(1) : (float)I(1)));
    else W(0, masked(I(1), to.size));
  }
}

static void shift(const struct block *it, const struct instruction *in) {
  uint32_t bits = 8 * in->type.size;
  EACH {
    uint32_t by = R(2);
    if (in->kind == SHL) W(0, by >= bits ? 0 : WHOLE(R(1) << by));
    else if (in->type.kind == 's') W(0, WHOLE(I(1) >> (by >= bits ? bits - 1 : by)));
    else W(0, by >= bits ? 0 : WHOLE(U(1) >> by));
  }
}

static void extract(const struct block *it, const struct instruction *in) {
  EACH {
    uint32_t at = R(2), length = R(3);
    uint64_t value = (uint32_t)R(1) >> at & ((1ull << length) - 1);
    if (in->type.kind == 's' && length && value >> (length - 1)) value |= ~0ull << length;
    W(0, WHOLE(value));
  }
}

static void divide(const struct block *it, const struct instruction *in) {
  int rest = in->kind == REM;
  EACH {
    if (in->type.kind == 'f') W(0, bits_of(F(1) / F(2)));
    else if (I(2) == 0) W(0, WHOLE(-1ll)); /* a GPU does not stop */
    else if (in->type.kind == 's') W(0, WHOLE(rest ? I(1) % I(2) : I(1) / I(2)));
    else W(0, WHOLE(rest ? U(1) % U(2) : U(1) / U(2)));
  }
}

static void access(const struct block *it, const struct instruction *in) {
  int loads = in->kind == LOAD, vector = in->list[loads ? 0 : 1], address = loads ? vector : 0, data = loads ? 0 : 1, size = in->type.size;
  EACH {
    uint64_t at = R(address) + in->offset[0];
    if (at % (size * vector)) end_process("a kernel's misaligned access");
    unsigned char *place = in->mode == SHARED ? in_shared(it, at, size * vector) : readable((void *)at);
    for (int i = 0; i < vector; i++, place += size) {
      uint64_t value = 0;
      if (loads) {
        memcpy(&value, place, size);
        W(data + i, value);
      } else {
        value = R(data + i);
        memcpy(place, &value, size);
      }
    }
  }
}

static void copy_to_shared(const struct block *it, const struct instruction *in) {
  EACH {
    uint32_t bytes = R(2), kept = in->count > 3 ? R(3) : bytes;
    unsigned char *to = in_shared(it, R(0) + in->offset[0], bytes);
    memset(to, 0, bytes);
    if (kept) memcpy(to, readable((void *)(R(1) + in->offset[1])), kept);
  }
}

static void exchange(const struct block *it, const struct instruction *in) {
  uint64_t before[1024];
  for (int t = 0; t < it->threads; t++) before[t] = R(1);
  EACH {
    int lane = R(2);
    W(0, before[in->mode == BUTTERFLY ? t ^ lane : t / WARP * WARP + lane % WARP]);
  }
}

static void reduce_warps(const struct block *it, const struct instruction *in) {
  for (int first = 0; first < it->threads; first += WARP) {
    int64_t best = whole(read(it, in, 1, first), in->type);
    for (int t = first; t < first + WARP; t++) {
      int64_t value = I(1);
      if (in->mode == LARGEST ? value > best : value < best) best = value;
    }
    for (int t = first; t < first + WARP; t++) W(0, WHOLE(best));
  }
}

/* ldmatrix: 8 x 8 matrices of 16 bits; lane l gets two neighbours of row l / 4, or of a column. */
static void load_matrices(const struct block *it, const struct instruction *in) {
  int matrices = in->list[0];
  for (int first = 0; first < it->threads; first += WARP) {
    uint32_t rows[WARP];
    for (int lane = 0; lane < WARP; lane++) rows[lane] = read(it, in, matrices, first + lane) + in->offset[0];
    for (int j = 0; j < matrices; j++)
      for (int lane = 0; lane < WARP; lane++) {
        int r = lane / 4, c = 2 * (lane % 4);
        uint32_t a = in->mode == TRANS ? rows[8 * j + c] + 2 * r : rows[8 * j + r] + 2 * c;
        uint32_t b = in->mode == TRANS ? rows[8 * j + c + 1] + 2 * r : a + 2;
        uint16_t low, high;
        memcpy(&low, in_shared(it, a, 2), 2);
        memcpy(&high, in_shared(it, b, 2), 2);
        write(it, in, j, first + lane, low | (uint32_t)high << 16);
      }
  }
}

/* stmatrix: the opposite of ldmatrix. */
static void store_matrices(const struct block *it, const struct instruction *in) {
  int matrices = in->list[1];
  for (int first = 0; first < it->threads; first += WARP)
    for (int j = 0; j < matrices; j++)
      for (int lane = 0; lane < WARP; lane++) {
        uint32_t pair = read(it, in, 1 + j, first + lane);
        for (int i = 0; i < 2; i++) {
          int r = lane / 4, c = 2 * (lane % 4) + i, row = in->mode == TRANS ? c : r, column = in->mode == TRANS ? r : c;
          uint16_t bits = pair >> 16 * i;
          memcpy(in_shared(it, (uint32_t)read(it, in, 0, first + 8 * j + row) + in->offset[0] + 2 * column, 2), &bits, 2);
        }
      }
}

static void unpack(float *to, uint32_t pair) {
  to[0] = bfloat16(pair & 0xffff);
  to[1] = bfloat16(pair >> 16);
}

static float dot16(const float *a, const float *b) {
  float sum = 0;
  for (int k = 0; k < 16; k++) sum += a[k] * b[k];
  return sum;
}

/* The part of a 16-column A that lane l has in four registers: rows l / 4 and 8 below, two columns and the two that are 8 further. */
static void unpack_a(const struct block *it, const struct instruction *in, int operand, int thread, float (*a)[16], int row) {
  for (int i = 0; i < 4; i++) unpack(&a[row + 8 * (i % 2)][2 * (thread % 4) + 8 * (i / 2)], read(it, in, operand + i, thread));
}

/* mma.m16n8k16 of bfloat16, with sums in float32. */
static void multiply_matrices(const struct block *it, const struct instruction *in) {
  for (int first = 0; first < it->threads; first += WARP) {
    float a[16][16], b[8][16], c[16][8];
    for (int lane = 0; lane < WARP; lane++) {
      int row = lane / 4, column = 2 * (lane % 4), t = first + lane;
      unpack_a(it, in, 4, t, a, row);
      for (int i = 0; i < 2; i++) unpack(&b[row][column + 8 * i], R(8 + i));
      for (int i = 0; i < 4; i++) c[row + 8 * (i / 2)][column + i % 2] = F(10 + i);
    }
    for (int row = 0; row < 16; row++)
      for (int column = 0; column < 8; column++) c[row][column] += dot16(a[row], b[column]);
    for (int lane = 0; lane < WARP; lane++)
      for (int i = 0; i < 4; i++) write(it, in, i, first + lane, bits_of(c[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2]));
  }
}

/* Reads a matrix of wgmma from shared memory, by its descriptor: start, distances of blocks, and the pattern by which rows are swizzled. */
static void read_described(const struct block *it, uint64_t descriptor, int rows, int transposed, float (*to)[16]) {
  uint32_t start = (descriptor & 0x3fff) << 4, lead = (descriptor >> 16 & 0x3fff) << 4, stride = (descriptor >> 32 & 0x3fff) << 4;
  uint32_t width = 128 >> ((descriptor >> 62) - 1), swizzle = width == 128 ? 7 : width == 64 ? 3 : 1, numbers = width / 2;
  for (int r = 0; r < rows; r++)
    for (int k = 0; k < 16; k++) {
      uint32_t at = transposed ? start + r / numbers * lead + k / 8 * stride + k % 8 * width + 2 * (r % numbers)
                               : start + r / 8 * stride + r % 8 * width + 2 * k;
      uint16_t bits;
      memcpy(&bits, in_shared(it, at ^ (at >> 7 & swizzle) << 4, 2), 2);
      to[r][k] = bfloat16(bits);
    }
}

/* wgmma.m64nNk16 of bfloat16 by groups of four warps: A from registers or shared memory, B from shared memory. */
static void multiply_in_groups(const struct block *it, const struct instruction *in) {
  int columns = in->target, results = in->list[0], from_registers = in->list[1] > 1, a_at = results, b_at = results + in->list[1], adds_at = b_at + 1;
  int transposed_b = read(it, in, in->count - 1, 0), transposed_a = from_registers ? 0 : read(it, in, in->count - 2, 0);
  static __thread float a[64][16], b[256][16];
  for (int first = 0; first < it->threads; first += WARP_GROUP) {
    read_described(it, read(it, in, b_at, first), columns, transposed_b, b);
    if (!from_registers) read_described(it, read(it, in, a_at, first), 64, transposed_a, a);
    for (int lane = 0; lane < WARP_GROUP && from_registers; lane++) unpack_a(it, in, a_at, first + lane, a, 16 * (lane / WARP) + lane % WARP / 4);
    for (int lane = 0; lane < WARP_GROUP; lane++) {
      int t = first + lane, row = 16 * (lane / WARP) + lane % WARP / 4, adds = R(adds_at) & 1;
      for (int i = 0; i < results; i++) {
        float product = dot16(a[row + 8 * (i / 2 % 2)], b[8 * (i / 4) + 2 * (lane % 4) + i % 2]);
        W(i, bits_of(adds ? F(i) + product : product));
      }
    }
  }
}

static void execute_double(const struct block *it, const struct instruction *in) {
#define D(i) double_of(R(i))
  EACH {
    double value;
    switch (in->kind) {
    case ADDS: value = D(1) + D(2); break;
    case SUBTRACTS: value = D(1) - D(2); break;
    case MUL: value = D(1) * D(2); break;
    case FMA: value = fma(D(1), D(2), D(3)); break;
    case DIV: value = D(1) / D(2); break;
    case SQRT: value = sqrt(D(1)); break;
    default: end_process(in->text);
    }
    W(0, bits_of_double(value));
  }
#undef D
}

static void execute(const struct block *it, const struct instruction *in, const uint64_t *arguments) {
  if (in->type.kind == 'f' && in->type.size == 8 && in->kind != CVT) return execute_double(it, in);
  const int real = in->type.kind == 'f';
  switch (in->kind) {
  case MOV: move(it, in); break;
  case ADDS: EACH W(0, real ? bits_of(F(1) + F(2)) : WHOLE(I(1) + I(2))); break;
  case SUBTRACTS: EACH W(0, real ? bits_of(F(1) - F(2)) : WHOLE(I(1) - I(2))); break;
  case MUL: case MAD: multiply(it, in); break;
  case FMA: EACH W(0, bits_of(fmaf(F(1), F(2), F(3)))); break;
  case AND: EACH W(0, R(1) & R(2)); break;
  case OR: EACH W(0, R(1) | R(2)); break;
  case XOR: EACH W(0, R(1) ^ R(2)); break;
  case NOT: EACH W(0, in->type.kind == 'p' ? !(R(1) & 1) : WHOLE(~R(1))); break;
  case NEG: EACH W(0, real ? bits_of(-F(1)) : WHOLE(-I(1))); break;
  case ABS: EACH W(0, real ? bits_of(fabsf(F(1))) : WHOLE(llabs(I(1)))); break;
  case MAX: EACH W(0, real ? bits_of(fmaxf(F(1), F(2))) : WHOLE(I(1) > I(2) ? I(1) : I(2))); break;
  case MIN: EACH W(0, real ? bits_of(fminf(F(1), F(2))) : WHOLE(I(1) < I(2) ? I(1) : I(2))); break;
  case SHL: case SHR: shift(it, in); break;
  case BFE: extract(it, in); break;
  case SETP: compare(it, in); break;
  case SELP: EACH W(0, WHOLE(R(3) & 1 ? R(1) : R(2))); break;
  case CVT: convert(it, in); break;
  case EX2: EACH W(0, bits_of(exp2f(F(1)))); break;
  case LG2: EACH W(0, bits_of(log2f(F(1)))); break;
  case SQRT: EACH W(0, bits_of(sqrtf(F(1)))); break;
  case RSQRT: EACH W(0, bits_of(1 / sqrtf(F(1)))); break;
  case RCP: EACH W(0, bits_of(1 / F(1))); break;
  case DIV: case REM: divide(it, in); break;
  case LOAD_PARAMETER: EACH W(0, arguments[in->target]); break;
  case LOAD: case STORE: access(it, in); break;
  case COPY_ASYNC: copy_to_shared(it, in); break;
  case SHUFFLE: exchange(it, in); break;
  case REDUCE: reduce_warps(it, in); break;
  case LOAD_MATRIX: load_matrices(it, in); break;
  case STORE_MATRIX: store_matrices(it, in); break;
  case MMA: multiply_matrices(it, in); break;
  case WGMMA: multiply_in_groups(it, in); break;
  case BRANCH: case RETURN: case NOTHING: break;
  }
}

/* Memory that nothing has written: a NaN in any format. */
#define UNWRITTEN 0xff

void ptx_block(const struct ptx *kernel, const unsigned index[3], const uint64_t *arguments, size_t shared) {
  const int n = kernel->threads, end = kernel->count;
  int *place = calloc(n, sizeof *place);
  struct block block = {kernel, n, calloc((size_t)kernel->registers * n, sizeof(uint64_t)), calloc(n, 1), malloc(shared + 16), shared}, *it = &block;
  memset(it->shared, UNWRITTEN, shared + 16);
  for (int t = 0; t < n; t++) {
    uint64_t special[SPECIALS] = {[TID_X] = t, [CTAID_X] = index[0], [CTAID_Y] = index[1], [CTAID_Z] = index[2], [LANE] = t % WARP, [NTID_X] = n};
    for (int i = 0; i < SPECIALS; i++) it->registers[(size_t)(kernel->registers - SPECIALS + i) * n + t] = special[i];
  }
  int at = 0, together = 1;
  for (;;) {
    if (!together) {
      at = end;
      for (int t = 0; t < n; t++) if (place[t] < at) at = place[t];
      together = 1;
      for (int t = 0; t < n; t++) if (place[t] != at) together = 0;
    }
    if (at >= end) break;
    const struct instruction *in = &kernel->code[at];
    int taken = 0;
    for (int t = 0; t < n; t++) {
      int guarded = in->guard >= 0 && (it->registers[(size_t)in->guard * n + t] & 1) == (uint64_t)in->negated;
      taken += it->active[t] = (together || place[t] == at) && !guarded;
    }
    if (in->kind == BRANCH || in->kind == RETURN) {
      int to = in->kind == RETURN ? end : in->target;
      if (together && (taken == 0 || taken == n)) {
        at = taken ? to : at + 1;
        continue;
      }
      for (int t = 0; t < n; t++) if (together || place[t] == at) place[t] = it->active[t] ? to : at + 1;
      together = 0;
      continue;
    }
    execute(it, in, arguments);
    if (together) at++;
    else
      for (int t = 0; t < n; t++) if (place[t] == at) place[t] = at + 1;
  }
  free(it->registers);
  free(it->active);
  free(it->shared);
  free(place);
}
