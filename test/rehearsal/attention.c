/*
 * The arithmetic of GroupQueryAttention on CUDA: positions, what is appended to the cache, and flash attention over it. Sources, in ONNX
 * Runtime 1.30: contrib_ops/cuda/bert/group_query_attention_impl.cu, group_query_attention_qkv.cuh and flash_attention/flash.h.
 */
#include "rehearsal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TYPE(i) type_of(launch->kernel.template[i])

/* (last positions, to: lengths before, lengths with what is new, padded lengths, three for other kernels, rows, new tokens of each, whether caches are empty, …) */
static void sequence_lengths(const struct launch *launch) {
  if (ARGUMENT(void *, 4) || ARGUMENT(void *, 5) || ARGUMENT(void *, 6)) lacks("GetSequenceLengths for other kernels than flash attention");
  int rows = ARGUMENT(int, 7), fresh = ARGUMENT(int, 8), empty = ARGUMENT(uint8_t, 9);
  int *before = POINTER(1), *all = POINTER(2), *padded = POINTER(3);
  for (int row = 0; row < rows; row++) {
    all[row] = ((int *)POINTER(0))[row] + 1;
    before[row] = empty ? 0 : all[row] - fresh;
    padded[row] = empty ? fresh : all[row];
  }
}

/* Number `i` of a head that begins at `head`, turned by its position: `half` numbers with the `half` after them. */
static double turned(enum type type, const void *from, int64_t head, int i, int half, const void *cosines, const void *sines, int position) {
  double x = get(type, from, head + i);
  if (i >= 2 * half) return x;
  double other = get(type, from, head + (i + half) % (2 * half)) * (i < half ? -1 : 1);
  int64_t angle = (int64_t)position * half + i % half;
  return x * get(type, cosines, angle) + other * get(type, sines, angle);
}

/*
 * <type, type of the cache, its bits, largest head>(joined, queries, keys, values, to: queries, keys of the cache, its values, three
 * scales, heads, key-value heads, size of a head, all sizes, rows of cosines, room of the cache, lengths before, the same, cosines, sines,
 * numbers that turn, positions, whether pairs are neighbours, whether the cache is by head, …, two norms, …); blocks are [time, heads of all three, rows]
 */
static void append(const struct launch *launch) {
  enum type type = TYPE(0);
  int heads = ARGUMENT(int, 10), owners = ARGUMENT(int, 11), size = ARGUMENT(int, 12), room = ARGUMENT(int, 15), half = ARGUMENT(int, 20) / 2;
  if (ARGUMENT(void *, 21) || ARGUMENT(uint8_t, 22) || !ARGUMENT(uint8_t, 23) || ARGUMENT(void *, 25) || type != TYPE(1))
    lacks("UnpackRoPEAppend with positions, norms, or another cache");
  int time = launch->grid.x, all = heads + 2 * owners, joined = ARGUMENT(void *, 0) != 0;
  for (unsigned row = 0; row < launch->grid.z; row++)
    for (int t = 0; t < time; t++)
      for (int head = 0; head < all; head++) {
        int part = head < heads ? 0 : head < heads + owners ? 1 : 2; /* queries, keys, values */
        int own = part == 0 ? head : (head - heads) % owners, count = part == 0 ? heads : owners;
        int position = ((int *)POINTER(16))[row] + t;
        int64_t token = (int64_t)row * time + t, from = joined ? (token * all + head) * size : (token * count + own) * size;
        int64_t to = part == 0 ? (token * heads + own) * size : (((int64_t)row * owners + own) * room + position) * size;
        for (int i = 0; i < size; i++)
          put(type, POINTER(4 + part), to + i, turned(type, POINTER(joined ? 0 : 1 + part), from, i, part < 2 ? half : 0, POINTER(18), POINTER(19), position));
      }
}

/* The parts of Flash_fwd_params that are read; strides count numbers. */
struct flash {
  void *queries, *keys, *values;
  int64_t query_row, key_row, value_row, query_time, key_time, value_time, query_head, key_head, value_head;
  int heads, owners, shared;
  void *to, *parts;
  int64_t to_row, to_time, to_head;
  void *scores, *sums, *part_sums;
  int rows, fresh, room, knew, size, rounded[3], turning, other;
  float scale;
  char between[240 - 220];
  int *lengths;
  char more[264 - 248];
  void *new_keys, *new_values;
  int64_t new_key_row, new_value_row, new_key_time, new_value_time, new_key_head, new_value_head;
  void *cosines, *sines;
  char rest[380 - 344];
  uint8_t is_bfloat16, is_causal, is_cumulative, are_neighbours;
};
_Static_assert(offsetof(struct flash, heads) == 96 && offsetof(struct flash, scale) == 216 && offsetof(struct flash, cosines) == 328 && offsetof(struct flash, is_bfloat16) == 380, "as the provider has it");

/* Appends a row's new keys, rotated, and values to the cache, after the `before` existing ones. */
static void append_new(const struct flash *it, int row, int before) {
  for (int t = 0; t < it->knew; t++)
    for (int owner = 0; owner < it->owners; owner++)
      for (int i = 0; i < it->size; i++) {
        int64_t key = row * it->new_key_row + t * it->new_key_time + owner * it->new_key_head;
        int64_t value = row * it->new_value_row + t * it->new_value_time + owner * it->new_value_head;
        double x = turned(BFLOAT16, readable(it->new_keys), key, i, it->turning / 2, readable(it->cosines), readable(it->sines), before + t);
        put(BFLOAT16, readable(it->keys), row * it->key_row + (before + t) * it->key_time + owner * it->key_head + i, x);
        put(BFLOAT16, readable(it->values), row * it->value_row + (before + t) * it->value_time + owner * it->value_head + i, get(BFLOAT16, readable(it->new_values), value + i));
      }
}

/*
 * Attention of each new token's heads over the keys before it and its own. For one token per row the kernel also appends to the cache. A
 * kernel that divides the keys among blocks computes everything here, so joining the parts does nothing.
 */
static void flash(const struct launch *launch) {
  struct flash *it = launch->arguments[0];
  if (!it->is_bfloat16 || it->is_cumulative || it->are_neighbours || !it->lengths) lacks("flash attention of float16, or of rows that follow each other");
  double *weights = malloc(sizeof *weights * (it->room + it->knew)), *sums = malloc(sizeof *sums * it->size);
  uint16_t *query = malloc(sizeof *query * it->size);
  for (int row = 0; row < it->rows; row++) {
    int before = ((int *)readable(it->lengths))[row], length = before + it->knew;
    append_new(it, row, before);
    for (int head = 0; head < it->heads; head++)
      for (int t = 0; t < it->fresh; t++) {
        int seen = it->is_causal ? length - it->fresh + t + 1 : length, owner = head / it->shared;
        int64_t own = row * it->query_row + t * it->query_time + head * it->query_head;
        for (int n = 0; n < it->size; n++) put(BFLOAT16, query, n, turned(BFLOAT16, readable(it->queries), own, n, it->turning / 2, readable(it->cosines), readable(it->sines), before + t));
        double total = 0, most = -INFINITY;
        for (int i = 0; i < seen; i++) {
          int64_t key = row * it->key_row + i * it->key_time + owner * it->key_head;
          weights[i] = 0;
          for (int n = 0; n < it->size; n++) weights[i] += get(BFLOAT16, query, n) * get(BFLOAT16, readable(it->keys), key + n);
          weights[i] *= it->scale;
          if (weights[i] > most) most = weights[i];
        }
        memset(sums, 0, sizeof *sums * it->size);
        for (int i = 0; i < seen; i++) {
          int64_t value = row * it->value_row + i * it->value_time + owner * it->value_head;
          double weight = exp(weights[i] - most);
          total += weight;
          for (int n = 0; n < it->size; n++) sums[n] += weight * get(BFLOAT16, readable(it->values), value + n);
        }
        for (int n = 0; n < it->size; n++) put(BFLOAT16, readable(it->to), row * it->to_row + t * it->to_time + head * it->to_head + n, sums[n] / total);
      }
  }
  free(weights), free(sums), free(query);
}
/*
 * Before compute capability 8.0: CUTLASS's attention (contrib_ops/cuda/bert/cutlass_fmha), whose keys and values have as many heads as the
 * queries. The parts of AttentionKernel::Params that are read.
 */
struct efficient {
  void *queries, *keys, *values, *bias, *query_starts, *key_starts;
  int *lengths;
  int64_t diagonal;
  void *to, *sums, *log_sums;
  int window;
  float scale, cap;
  int size, value_size, fresh, room, absolute;
  uint8_t mask;
  int query_time, key_time, value_time, bias_time, time, query_head, key_head, value_head;
  char rest[200 - 156];
  int rows, heads;
};
_Static_assert(offsetof(struct efficient, scale) == 92 && offsetof(struct efficient, query_time) == 124 && offsetof(struct efficient, rows) == 200, "as the provider has it");

static void efficient(const struct launch *launch) {
  struct efficient *it = launch->arguments[0];
  enum { FROM_BOTTOM_RIGHT = 2 };
  if (it->bias || it->key_starts || !it->lengths || it->mask != FROM_BOTTOM_RIGHT || it->cap != 0) lacks("CUTLASS's attention with a bias, another mask, or a cap");
  enum type type = !strncmp(launch->kernel.template[0], "AttentionKernel<cutlass::half_t", 31) ? FLOAT16 : FLOAT;
  void *queries = readable(it->queries), *keys = readable(it->keys), *values = readable(it->values), *to = readable(it->to);
  double *weights = malloc(sizeof *weights * it->room), *sums = malloc(sizeof *sums * it->value_size);
  for (int row = 0; row < (int)launch->grid.z; row++)
    for (int head = 0; head < it->heads; head++)
      for (int t = 0; t < it->fresh; t++) {
        int seen = ((int *)readable(it->lengths))[row] - it->fresh + t + 1;
        int64_t kept = (int64_t)row * it->heads * it->key_head + (int64_t)head * it->key_head;
        int64_t query = ((int64_t)row * it->fresh + t) * it->query_time + head * it->query_head;
        double total = 0, most = -INFINITY;
        for (int i = 0; i < seen; i++) {
          weights[i] = 0;
          for (int n = 0; n < it->size; n++) weights[i] += get(type, queries, query + n) * get(type, keys, kept + (int64_t)i * it->key_time + n);
          weights[i] *= it->scale;
          if (weights[i] > most) most = weights[i];
        }
        memset(sums, 0, sizeof *sums * it->value_size);
        for (int i = 0; i < seen; i++) {
          double weight = exp(weights[i] - most);
          total += weight;
          for (int n = 0; n < it->value_size; n++) sums[n] += weight * get(type, values, kept + (int64_t)i * it->value_time + n);
        }
        for (int n = 0; n < it->value_size; n++) put(type, to, ((int64_t)row * it->fresh + t) * it->time + head * it->value_size + n, sums[n] / total);
      }
  free(weights), free(sums);
}

/* Repeats keys or values for the heads that share them: (from, to, positions, their heads, whether heads come last), 8 bytes at a time; blocks are [positions, rows] of [numbers, heads] */
static void ungroup(const struct launch *launch) {
  if (strcmp(launch->kernel.template[0], "float2") || ARGUMENT(uint8_t, 4)) lacks("Ungroup of another layout");
  int64_t length = ARGUMENT(int, 2), owners = ARGUMENT(int, 3), heads = launch->block.y, bytes = 8 * launch->block.x;
  for (unsigned row = 0; row < launch->grid.y; row++)
    for (int64_t head = 0; head < heads; head++)
      memcpy((char *)POINTER(1) + (row * heads + head) * length * bytes, (char *)POINTER(0) + (row * owners + head / (heads / owners)) * length * bytes, length * bytes);
}
static void joined_already(const struct launch *launch) {}

emulation *attention_of(const struct signature *kernel) {
  static const struct { const char *name; emulation *emulate; } known[] = {
      {"GetSequenceLengths", sequence_lengths}, {"attention_kernel_batched_impl_right_padding", efficient}, {"Ungroup", ungroup},
       {"UnpackRoPEAppend", append}, {"flash::flash_fwd_kernel", flash},
      {"flash::flash_fwd_splitkv_kernel", flash}, {"flash::flash_fwd_splitkv_combine_kernel", joined_already}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(known[i].name, kernel->name)) return known[i].emulate;
  return 0;
}
