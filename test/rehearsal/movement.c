/* ONNX Runtime's CUDA kernels that move numbers without changing them, on the host, like arithmetic.c. */
#include "rehearsal.h"
#include <string.h>

#define TYPE(i) type_of(launch->kernel.template[i])
#define DIVISOR(i) ((int)ARGUMENT(struct divisor, i).divisor)

static void move(size_t bytes, void *to, int64_t i, const void *from, int64_t j) {
  memcpy((char *)to + i * bytes, (const char *)from + j * bytes, bytes);
}

/* <type>(to, number, count) */
static void fill(const struct launch *launch) {
  for (int i = 0; i < ARGUMENT(int, 2); i++) move(bytes_of(TYPE(0)), POINTER(0), i, launch->arguments[1], 0);
}

/* <type>(to, from, count): the same number everywhere */
static void fill_from(const struct launch *launch) {
  for (int i = 0; i < ARGUMENT(int, 2); i++) move(bytes_of(TYPE(0)), POINTER(0), i, POINTER(1), 0);
}

/* <type>(count, from, to, inner numbers of to, strides of from): two axes */
static void expand_two(const struct launch *launch) {
  for (int i = 0; i < ARGUMENT(int, 0); i++) {
    int64_t from = (int64_t)(i / DIVISOR(3)) * ARGUMENT(int, 4) + (int64_t)(i % DIVISOR(3)) * ARGUMENT(int, 5);
    move(bytes_of(TYPE(0)), POINTER(2), i, POINTER(1), from);
  }
}

/* <type>(rank, count, from, to, strides of to, of from) */
static void expand(const struct launch *launch) {
  struct divisors *to = &ARGUMENT(struct divisors, 4);
  struct sizes *strides = &ARGUMENT(struct sizes, 5);
  for (int i = 0; i < ARGUMENT(int, 1); i++) {
    int64_t rest = i, from = 0;
    for (int axis = 0; axis < ARGUMENT(int, 0); axis++) {
      from += strides->of[axis] * (rest / to->of[axis].divisor);
      rest %= to->of[axis].divisor;
    }
    move(bytes_of(TYPE(0)), POINTER(3), i, POINTER(2), from);
  }
}

/* <type>(rank, strides of from in the order of to, from, strides of to, to, count) */
static void transpose(const struct launch *launch) {
  struct sizes *strides = &ARGUMENT(struct sizes, 1);
  struct divisors *result = &ARGUMENT(struct divisors, 3);
  for (int i = 0; i < ARGUMENT(int, 5); i++) {
    int64_t rest = i, from = 0;
    for (int axis = 0; axis < ARGUMENT(int, 0); axis++) {
      from += strides->of[axis] * (rest / result->of[axis].divisor);
      rest %= result->of[axis].divisor;
    }
    move(bytes_of(TYPE(0)), POINTER(4), i, POINTER(2), from);
  }
}

/* <bytes of a number>(strides of from, from, strides of to, to, size of axis 2, …): the last axis stays, 16 bytes at a time */
static void transpose_rows(const struct launch *launch) {
  struct sizes *from = &ARGUMENT(struct sizes, 0), *to = &ARGUMENT(struct sizes, 2);
  int64_t each = 16 / (*launch->kernel.template[0] - '0');
  for (unsigned a = 0; a < launch->grid.z; a++)
    for (unsigned b = 0; b < launch->grid.y; b++)
      for (int64_t c = 0; c < ARGUMENT(int64_t, 4); c++)
        for (unsigned d = 0; d < launch->block.x; d++)
          move(16, POINTER(3), (a * to->of[0] + b * to->of[1] + c * to->of[2]) / each + d,
               POINTER(1), (a * from->of[0] + b * from->of[1] + c * from->of[2]) / each + d);
}

/* (strides of from, from, strides of to, to, bytes of a number, size of axis 2, …): four axes, a number at a time */
static void transpose_numbers(const struct launch *launch) {
  struct sizes *from = &ARGUMENT(struct sizes, 0), *to = &ARGUMENT(struct sizes, 2);
  for (unsigned a = 0; a < launch->grid.z; a++)
    for (unsigned b = 0; b < launch->grid.y; b++)
      for (int64_t c = 0; c < ARGUMENT(int64_t, 5); c++)
        for (unsigned d = 0; d < launch->block.x; d++)
          move(ARGUMENT(size_t, 4), POINTER(3), a * to->of[0] + b * to->of[1] + c * to->of[2] + d * to->of[3],
               POINTER(1), a * from->of[0] + b * from->of[1] + c * from->of[2] + d * from->of[3]);
}

/* (inner numbers of all parts, of one entry, entries of a part, to, parts, count) */
static void concat(const struct launch *launch) {
  int joined = DIVISOR(0), inner = DIVISOR(1), entries = DIVISOR(2);
  struct pointers *parts = &ARGUMENT(struct pointers, 4);
  for (int i = 0; i < ARGUMENT(int, 5); i++) {
    int outer = i / joined, entry = i % joined / inner, column = i % joined % inner;
    move(bytes_of(TYPE(0)), POINTER(3), i, readable(parts->of[entry / entries]), (outer * entries + entry % entries) * inner + column);
  }
}

/* (inner numbers of all parts, of one entry, entries of a part, parts, from, to of each part, count) */
static void split(const struct launch *launch) {
  int joined = DIVISOR(0), inner = DIVISOR(1), entries = DIVISOR(2);
  struct pointers *parts = &ARGUMENT(struct pointers, 5);
  for (int i = 0; i < ARGUMENT(int, 6); i++) {
    int outer = i / joined, entry = i % joined / inner, column = i % joined % inner;
    move(bytes_of(TYPE(0)), readable(parts->of[entry / entries]), (outer * entries + entry % entries) * inner + column, POINTER(4), i);
  }
}

/* Parts of different lengths: which part an entry belongs to, the entries of each part and where each ends, all in device memory. */
struct parts { const int64_t *entries, *ends, *part; void **data; int joined, inner; };
static int64_t place(const struct parts *it, int i, void **data) {
  int outer = i / it->joined, entry = i % it->joined / it->inner, column = i % it->joined % it->inner;
  int64_t part = it->part[entry], begin = part == 0 ? 0 : it->ends[part - 1];
  *data = readable(it->data[part]);
  return (outer * it->entries[part] + entry - begin) * it->inner + column;
}

/* (inner numbers of all parts, of one entry, entries, ends, part, to, parts, count) */
static void concat_different(const struct launch *launch) {
  struct parts parts = {POINTER(2), POINTER(3), POINTER(4), POINTER(6), DIVISOR(0), DIVISOR(1)};
  for (int i = 0; i < ARGUMENT(int, 7); i++) {
    void *data;
    int64_t at = place(&parts, i, &data);
    move(bytes_of(TYPE(0)), POINTER(5), i, data, at);
  }
}

/* (inner numbers of all parts, of one entry, entries, ends, part, parts, from, data of each part, count) */
static void split_different(const struct launch *launch) {
  struct parts parts = {POINTER(2), POINTER(3), POINTER(4), POINTER(7), DIVISOR(0), DIVISOR(1)};
  for (int i = 0; i < ARGUMENT(int, 8); i++) {
    void *data;
    int64_t at = place(&parts, i, &data);
    move(bytes_of(TYPE(0)), data, at, POINTER(6), i);
  }
}

/* Three parts of the last axis: (bytes of each, from, to, to, to, bytes of a row), a block for each row */
static void split_in_three(const struct launch *launch) {
  char *from = POINTER(3);
  for (unsigned row = 0; row < launch->grid.x; row++)
    for (int part = 0; part < 3; part++) {
      int64_t bytes = ARGUMENT(int64_t, part);
      memcpy((char *)POINTER(4 + part) + row * bytes, from, bytes);
      from += bytes;
    }
}

/* <whether it is the gradient, axes, type>(starts, steps, strides of from, strides of to, from, to, count) */
static void slice(const struct launch *launch) {
  int axes = *launch->kernel.template[1] - '0';
  struct sizes *starts = &ARGUMENT(struct sizes, 0), *steps = &ARGUMENT(struct sizes, 1), *strides = &ARGUMENT(struct sizes, 2);
  struct divisors *result = &ARGUMENT(struct divisors, 3);
  for (int i = 0; i < ARGUMENT(int, 6); i++) {
    int64_t rest = i, from = 0;
    for (int axis = 0; axis < axes; axis++) {
      int last = axis == axes - 1;
      int64_t along = last ? rest : rest / result->of[axis].divisor;
      if (!last) rest %= result->of[axis].divisor;
      from += (starts->of[axis] + along * steps->of[axis]) * (last ? 1 : strides->of[axis]);
    }
    move(bytes_of(TYPE(2)), POINTER(5), i, POINTER(4), from);
  }
}

/* Constant values around the last two axes: <type, mode>(images, channels, rows of from, of to, columns of from, of to, rows before, columns before, value, from, to, count) */
static void pad(const struct launch *launch) {
  int64_t rows = ARGUMENT(int64_t, 2), to_rows = ARGUMENT(int64_t, 3), columns = ARGUMENT(int64_t, 4), to_columns = ARGUMENT(int64_t, 5);
  for (uint64_t i = 0; i < ARGUMENT(uint64_t, 11); i++) {
    int64_t column = (int64_t)(i % to_columns) - ARGUMENT(int64_t, 7), row = (int64_t)(i / to_columns % to_rows) - ARGUMENT(int64_t, 6);
    int64_t image = i / to_columns / to_rows;
    int outside = row < 0 || column < 0 || row >= rows || column >= columns;
    if (outside) move(bytes_of(TYPE(0)), POINTER(10), i, launch->arguments[8], 0);
    else move(bytes_of(TYPE(0)), POINTER(10), i, POINTER(9), (image * rows + row) * columns + column);
  }
}

/* <type>(numbers of from for an outer entry, entries, of to, inner numbers, indices, their bytes, from, to, count) */
static void gather(const struct launch *launch) {
  enum type type = ARGUMENT(size_t, 5) == 4 ? INT32 : INT64;
  int64_t block = ARGUMENT(int64_t, 0), entries = ARGUMENT(int64_t, 1);
  int to_block = DIVISOR(2), inner = DIVISOR(3);
  for (int i = 0; i < ARGUMENT(int, 8); i++) {
    int64_t entry = get(type, POINTER(4), i % to_block / inner);
    if (entry < 0) entry += entries;
    if (entry < 0 || entry >= entries) memset((char *)POINTER(7) + i * bytes_of(TYPE(0)), 0, bytes_of(TYPE(0)));
    else move(bytes_of(TYPE(0)), POINTER(7), i, POINTER(6), i / to_block * block + entry * inner + i % inner);
  }
}

static int is(const char *text, const char *wanted) { return text && !strcmp(text, wanted); }

/* Indices along the first of two axes. */
#define OUTER_AXIS "OffsetCalculatorFor2D<true, false>"

/* OffsetCalculatorFor2D and OffsetCalculator of indices that lie one after the other: where the row of an index begins. */
struct rows { struct divisor indices; int length; };
struct axes { int count; struct divisors indices; int room, strides[8]; };
static int64_t row_of(const struct launch *launch, int i) {
  if (!strncmp(launch->kernel.template[3], "OffsetCalculatorFor2D", 21)) {
    struct rows *rows = &ARGUMENT(struct rows, 5);
    if (is(launch->kernel.template[3], OUTER_AXIS)) return i % rows->indices.divisor;
    return (int64_t)(i / rows->indices.divisor) * rows->length;
  }
  struct axes *axes = &ARGUMENT(struct axes, 5);
  int64_t offset = 0;
  for (int axis = 0; axis < axes->count; axis++) {
    offset += (int64_t)axes->strides[axis] * (i / axes->indices.of[axis].divisor);
    i %= axes->indices.of[axis].divisor;
  }
  return offset;
}
/* <type, of indices, whether it reads, rows, assignment>(from, indices, to, entries of the axis, its stride, rows, …, count) */
static void gather_elements(const struct launch *launch) {
  int reads = !strcmp(launch->kernel.template[2], "true");
  int64_t entries = ARGUMENT(int64_t, 3), stride = ARGUMENT(int64_t, 4);
  for (int i = 0; i < ARGUMENT(int, 7); i++) {
    int64_t entry = get(TYPE(1), POINTER(1), i);
    if (entry < 0) entry += entries;
    if (entry < 0 || entry >= entries) continue;
    int64_t at = row_of(launch, i) + entry * stride;
    if (reads) move(bytes_of(TYPE(0)), POINTER(2), i, POINTER(0), at);
    else move(bytes_of(TYPE(0)), POINTER(2), at, POINTER(0), i);
  }
}

/* <of indices>(outer axes, sizes of from, slices, of an outer entry, numbers of one, axes of an index, their strides, indices, to) */
static void slice_offsets(const struct launch *launch) {
  int64_t axes = ARGUMENT(int64_t, 5), *strides = POINTER(6);
  struct sizes *sizes = &ARGUMENT(struct sizes, 1);
  for (int64_t i = 0; i < ARGUMENT(int64_t, 2); i++) {
    int64_t offset = i / ARGUMENT(int64_t, 3) * ARGUMENT(int64_t, 4);
    for (int64_t axis = 0; axis < axes; axis++) {
      int64_t index = get(TYPE(0), POINTER(7), i * axes + axis);
      offset += (index < 0 ? index + sizes->of[ARGUMENT(int64_t, 0) + axis] : index) * strides[axis];
    }
    put(INT64, POINTER(8), i, offset);
  }
}

/* <type>(slices, from, to, numbers of a slice, offsets) */
static void gather_slices(const struct launch *launch) {
  int64_t size = ARGUMENT(int64_t, 3), *offsets = POINTER(4);
  for (int64_t i = 0; i < ARGUMENT(int64_t, 0) * size; i++) move(bytes_of(TYPE(0)), POINTER(2), i, POINTER(1), offsets[i / size] + i % size);
}

/* <type, FuncAdd<type>>(to, indices, their numbers, axes of one, strides and sizes of these axes, updates, numbers of one, …) */
struct strides_and_sizes { int64_t of[12], *more; };
static void scatter_add(const struct launch *launch) {
  int64_t axes = ARGUMENT(int64_t, 3), size = ARGUMENT(int64_t, 6);
  if (axes > 6) lacks("ScatterND of indices of more than 6 axes");
  struct strides_and_sizes *at = &ARGUMENT(struct strides_and_sizes, 4);
  for (int64_t i = 0; i < ARGUMENT(int64_t, 1); i++) {
    int64_t offset = 0;
    for (int64_t axis = 0; axis < axes; axis++) {
      int64_t index = get(INT64, POINTER(2), i * axes + axis);
      offset += (index < 0 ? index + at->of[axes + axis] : index) * at->of[axis];
    }
    for (int64_t j = 0; j < size; j++)
      put(TYPE(0), POINTER(0), offset + j, get(TYPE(0), POINTER(0), offset + j) + get(TYPE(0), POINTER(5), i * size + j));
  }
}

static const struct { const char *name; emulation *emulate; } KERNELS[] = {
    {"_Fill", fill},
    {"_FillFromDataPtrKernel", fill_from},
    {"ExpandKernel2D", expand_two},
    {"ExpandKernel", expand},
    {"TransposeKernel", transpose},
    {"Transpose4DKernelParallelizeMultipleElementsPerThreadInInnermostDim", transpose_rows},
    {"Transpose4DKernelParallelizeOneElementPerThread", transpose_numbers},
    {"_ConcatKernelSameConcatDim", concat},
    {"_ConcatKernel", concat_different},
    {"_SplitKernelSameSplitDim", split},
    {"_SplitKernel", split_different},
    {"_Split3InnerKernel", split_in_three},
    {"_SliceKernel", slice},
    {"_PadNCHWInputWithPaddingAlongHAndWKernel", pad},
    {"_GatherKernel", gather},
    {"_GatherScatterElementsKernel", gather_elements},
    {"_ComputeSliceOffsetsKernel", slice_offsets},
    {"_GatherNDKernel", gather_slices},
    {"_ScatterNDKernelReduction", scatter_add},
};

static int known_rows(const char *rows, const char *assignment) {
  return (is(rows, "OffsetCalculatorFor2D<false, false>") || is(rows, OUTER_AXIS) || is(rows, "OffsetCalculator<false>")) && !strncmp(assignment, "FuncAssignment", 14);
}

emulation *movement_of(const struct signature *kernel) {
  for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++) {
    if (strcmp(KERNELS[i].name, kernel->name)) continue;
    emulation *found = KERNELS[i].emulate;
    const char *const *template = kernel->template;
    if (found == slice && !is(template[0], "false")) return 0;
    if (found == pad && !is(template[1], "0")) return 0;
    if (found == gather_elements && !known_rows(template[3], template[4])) return 0;
    if (found == scatter_add && strncmp(template[1], "FuncAdd", 7)) return 0;
    if ((found == concat || found == split) && !strstr(template[1], "TArray<")) return 0;
    return found;
  }
  return 0;
}
