/*
 * The arithmetic of ONNX Runtime's CUDA kernels on the host: one function per kernel, slow and readable. Numbers are computed in float64
 * and rounded once to the result's type. A sum of many float32 numbers is then more precise than on a GPU.
 *
 * The order of a kernel's parameters is in ONNX Runtime's sources (onnxruntime/core/providers/cuda and contrib_ops/cuda/bert, version
 * 1.30). `launch->kernel` has its template arguments.
 */
#include "rehearsal.h"
#include <math.h>
#include <string.h>

#define TYPE(i) type_of(launch->kernel.template[i])
#define FLAG(i) (!strcmp(launch->kernel.template[i], "true"))

/* ---- element by element: `OP_Exp<float>` names the operation */

static int operation_is(const char *functor, const char *name) {
  size_t length = strlen(name);
  return !strncmp(functor, "OP_", 3) && !strncmp(functor + 3, name, length) && functor[3 + length] == '<';
}

typedef double unary_operation(double x, double parameter);
static double keep(double x, double p) { return x; }
static double negative(double x, double p) { return -x; }
static double exponential(double x, double p) { return exp(x); }
static double logarithm(double x, double p) { return log(x); }
static double root(double x, double p) { return sqrt(x); }
static double inverse(double x, double p) { return 1 / x; }
static double magnitude(double x, double p) { return fabs(x); }
static double not(double x, double p) { return !x; }
static double rectified(double x, double p) { return x > 0 ? x : 0; }
static double hyperbolic(double x, double p) { return tanh(x); }
static double logistic(double x, double p) { return 1 / (1 + exp(-x)); }
static double thresholded(double x, double threshold) { return x > threshold ? x : 0; }
static double quick_gelu(double x, double alpha) { return x * logistic(alpha * x, 0); }

static const struct { const char *name; unary_operation *apply; } UNARY[] = {
    {"Cast", keep}, {"Neg", negative}, {"Exp", exponential}, {"Log", logarithm}, {"Sqrt", root}, {"Reciprocal", inverse},
    {"Abs", magnitude}, {"Not", not}, {"Relu", rectified}, {"Tanh", hyperbolic}, {"Sigmoid", logistic}, {"QuickGelu", quick_gelu},
    {"ThresholdedRelu", thresholded}};

static unary_operation *unary_of(const char *functor) {
  for (size_t i = 0; i < sizeof UNARY / sizeof *UNARY; i++)
    if (operation_is(functor, UNARY[i].name)) return UNARY[i].apply;
  return 0;
}

/* <from, to, functor>(from, to, functor, count) */
static void unary(const struct launch *launch) {
  unary_operation *apply = unary_of(launch->kernel.template[2]);
  float parameter = apply == quick_gelu || apply == thresholded ? ARGUMENT(float, 2) : 0;
  for (int64_t i = 0; i < ARGUMENT(int64_t, 3); i++)
    put(TYPE(1), POINTER(1), i, apply(get(TYPE(0), POINTER(0), i), parameter));
}

typedef double binary_operation(double x, double y);
static double plus(double x, double y) { return x + y; }
static double minus(double x, double y) { return x - y; }
static double times(double x, double y) { return x * y; }
static double over(double x, double y) { return x / y; }
static double larger(double x, double y) { return x > y ? x : y; }
static double smaller(double x, double y) { return x < y ? x : y; }
static double same(double x, double y) { return x == y; }
static double less(double x, double y) { return x < y; }
static double at_most(double x, double y) { return x <= y; }
static double more(double x, double y) { return x > y; }
static double at_least(double x, double y) { return x >= y; }
static double both(double x, double y) { return x && y; }
static double either(double x, double y) { return x || y; }

static const struct { const char *name; binary_operation *apply; } BINARY[] = {
    {"Add", plus}, {"Sub", minus}, {"Mul", times}, {"Div", over}, {"Pow", pow}, {"Max", larger}, {"Min", smaller},
    {"Equal", same}, {"Less", less}, {"LessOrEqual", at_most}, {"Greater", more}, {"GreaterOrEqual", at_least},
    {"And", both}, {"Or", either}};

static binary_operation *binary_of(const char *functor) {
  for (size_t i = 0; i < sizeof BINARY / sizeof *BINARY; i++)
    if (operation_is(functor, BINARY[i].name)) return BINARY[i].apply;
  return 0;
}

struct operands {
  enum type to_type, left_type, right_type;
  void *to, *left, *right;
  binary_operation *apply;
};
static void binary_at(struct operands *it, int64_t i, int64_t left, int64_t right) {
  double x = get(it->left_type, it->left, left), y = get(it->right_type, it->right, right);
  if (it->apply == over && it->to_type >= INT8) put(it->to_type, it->to, i, y ? trunc(x / y) : 0);
  else put(it->to_type, it->to, i, it->apply(x, y));
}

/* <whether left advances, whether right does, to, left, right, functor>(left, right, to, functor, count) */
static void binary_simple(const struct launch *launch) {
  struct operands operands = {TYPE(2), TYPE(3), TYPE(4), POINTER(2), POINTER(0), POINTER(1), binary_of(launch->kernel.template[5])};
  for (int i = 0; i < ARGUMENT(int, 4); i++) binary_at(&operands, i, FLAG(0) ? i : 0, FLAG(1) ? i : 0);
}

/* Returns the source of an entry of the result, by strides that are 0 along repeated axes. */
static int64_t broadcast(int64_t i, int rank, const struct sizes *strides, const struct divisors *result) {
  int64_t from = 0;
  for (int axis = 0; axis < rank; axis++) {
    from += strides->of[axis] * (i / result->of[axis].divisor);
    i %= result->of[axis].divisor;
  }
  return from;
}

/* <to, left, right, functor, whether left is broadcast, whether right is>(rank, strides, left, strides, right, strides of to, to, functor, count) */
static void binary(const struct launch *launch) {
  struct operands operands = {TYPE(0), TYPE(1), TYPE(2), POINTER(6), POINTER(2), POINTER(4), binary_of(launch->kernel.template[3])};
  int rank = ARGUMENT(int, 0);
  struct divisors *result = &ARGUMENT(struct divisors, 5);
  for (int i = 0; i < ARGUMENT(int, 8); i++)
    binary_at(&operands, i, FLAG(4) ? broadcast(i, rank, &ARGUMENT(struct sizes, 1), result) : i,
              FLAG(5) ? broadcast(i, rank, &ARGUMENT(struct sizes, 3), result) : i);
}

/* <to, left, right, functor>(left, right, entries that share one of right, [numbers of right,] to, functor, count) */
static void binary_per_channel(const struct launch *launch) {
  int repeats = !strcmp(launch->kernel.name, "_BinaryElementWiseRhsPerChannelBatchN");
  struct operands operands = {TYPE(0), TYPE(1), TYPE(2), POINTER(3 + repeats), POINTER(0), POINTER(1), binary_of(launch->kernel.template[3])};
  for (int i = 0; i < ARGUMENT(int, 5 + repeats); i++) {
    int right = i / ARGUMENT(struct divisor, 2).divisor;
    binary_at(&operands, i, i, repeats ? right % ARGUMENT(struct divisor, 3).divisor : (unsigned)right);
  }
}

/* How an operand of `Where` is read. */
enum { ALONG = '0', ONE_NUMBER = '1', BROADCAST = '2' };
static int reading(const struct launch *launch, int operand) {
  const char *text = launch->kernel.template[1 + operand]; /* (BroadcastIndexType)0 */
  return text[strlen(text) - 1];
}

/* <type, reading of condition, of x, of y>(condition, x, y, to, count) */
static void where_simple(const struct launch *launch) {
  for (int i = 0; i < ARGUMENT(int, 4); i++) {
    int chosen = get(BOOL, POINTER(0), reading(launch, 0) == ALONG ? i : 0) ? 1 : 2;
    put(TYPE(0), POINTER(3), i, get(TYPE(0), POINTER(chosen), reading(launch, chosen) == ALONG ? i : 0));
  }
}

/* <type, reading of condition, of x, of y>(rank, strides, condition, strides, x, strides, y, strides of to, to, count) */
static void where(const struct launch *launch) {
  for (int i = 0; i < ARGUMENT(int, 9); i++) {
    int64_t at[3];
    for (int operand = 0; operand < 3; operand++) {
      int how = reading(launch, operand);
      struct sizes *strides = &ARGUMENT(struct sizes, 1 + 2 * operand);
      at[operand] = how == ALONG ? i : how == ONE_NUMBER ? 0 : broadcast(i, ARGUMENT(uint64_t, 0), strides, &ARGUMENT(struct divisors, 7));
    }
    int chosen = get(BOOL, POINTER(2), at[0]) ? 1 : 2;
    put(TYPE(0), POINTER(8), i, get(TYPE(0), POINTER(2 + 2 * chosen), at[chosen]));
  }
}

/* <type>(from, to, lowest or null, highest or null, lowest, highest, count) */
static void clip(const struct launch *launch) {
  enum type type = TYPE(0);
  double low = POINTER(2) ? get(type, POINTER(2), 0) : get(type, launch->arguments[4], 0);
  double high = POINTER(3) ? get(type, POINTER(3), 0) : get(type, launch->arguments[5], 0);
  for (uint64_t i = 0; i < ARGUMENT(uint64_t, 6); i++) put(type, POINTER(1), i, fmin(fmax(get(type, POINTER(0), i), low), high));
}

/* ---- sums and what is made of them */

/* Returns the sum of `count` numbers, `step` apart; of their squares if `squares`. */
static double sum(enum type type, const void *from, int64_t first, int64_t count, int64_t step, int squares) {
  double total = 0;
  for (int64_t i = 0; i < count; i++) {
    double value = get(type, from, first + i * step);
    total += squares ? value * value : value;
  }
  return total;
}

/* Adds rows to existing sums: <from, to, buffer>(from, to, rows, columns). */
static void sum_rows(const struct launch *launch) {
  int rows = ARGUMENT(int, 2), columns = ARGUMENT(int, 3);
  for (int i = 0; i < columns; i++)
    put(TYPE(1), POINTER(1), i, get(TYPE(1), POINTER(1), i) + sum(TYPE(0), POINTER(0), i, rows, columns, 0));
}

/* Adds up each row: <from, to, buffer, of each number, of the sum, whether it is the mean>(rows, columns, from, to, buffer, buffer) */
static void sum_columns(const struct launch *launch) {
  int rows = ARGUMENT(int, 0), columns = ARGUMENT(int, 1);
  for (int i = 0; i < rows; i++) {
    double total = sum(TYPE(0), POINTER(2), (int64_t)i * columns, columns, 1, !strcmp(launch->kernel.template[3], "Square"));
    if (FLAG(5)) total /= columns;
    put(TYPE(1), POINTER(3), i, !strcmp(launch->kernel.template[4], "Sqrt") ? sqrt(total) : total);
  }
}

/* <type>(from, numbers along the axis, its stride, to, count, whether without the number itself, whether from the end) */
static void running_sum(const struct launch *launch) {
  int length = ARGUMENT(struct divisor, 1).divisor, stride = ARGUMENT(struct divisor, 2).divisor;
  int exclusive = ARGUMENT(uint8_t, 5), reverse = ARGUMENT(uint8_t, 6);
  for (int64_t i = 0; i < ARGUMENT(int64_t, 4); i++) {
    int place = i / stride % length;
    int first = reverse ? place + exclusive : 0, end = reverse ? length : place + !exclusive;
    put(TYPE(0), POINTER(3), i, sum(TYPE(0), POINTER(0), i + (int64_t)(first - place) * stride, end - first, stride, 0));
  }
}

static void softmax_row(enum type from_type, const void *from, enum type to_type, void *to, int64_t first, int length, int logarithmic) {
  double largest = -INFINITY, total = 0;
  for (int i = 0; i < length; i++) largest = fmax(largest, get(from_type, from, first + i));
  for (int i = 0; i < length; i++) total += exp(get(from_type, from, first + i) - largest);
  for (int i = 0; i < length; i++) {
    double value = get(from_type, from, first + i) - largest;
    put(to_type, to, first + i, logarithmic ? value - log(total) : exp(value) / total);
  }
}

/* <from, to, accumulator, log2 of the row, whether its logarithm>(to, from, rows, stride, numbers in a row) */
static void softmax(const struct launch *launch) {
  for (int64_t row = 0; row < ARGUMENT(int, 2); row++)
    softmax_row(TYPE(0), POINTER(1), TYPE(1), POINTER(0), row * ARGUMENT(int, 3), ARGUMENT(int, 4), FLAG(4));
}

/* More than 1,024 numbers: <at once, from, accumulator, to, SoftMaxForwardEpilogue or its logarithm>(to, from, numbers, strides), a block for each row */
static void softmax_long(const struct launch *launch) {
  int length = ARGUMENT(int, 2);
  if (ARGUMENT(int, 3) != length || ARGUMENT(int, 4) != length) lacks("Softmax of rows with a gap");
  for (int64_t row = 0; row < launch->grid.x; row++)
    softmax_row(TYPE(1), POINTER(1), TYPE(3), POINTER(0), row * length, length, !strncmp(launch->kernel.template[4], "LogSoftMax", 10));
}

/* The position of the largest number of each row, the first of equal ones: <type, whether the largest>(from, to, rows, columns), or where few rows are long (rows, columns, from, to, …) */
static void largest_position(const struct launch *launch) {
  int together = strstr(launch->kernel.name, "cooperative") != 0;
  int rows = ARGUMENT(int, together ? 0 : 2), columns = ARGUMENT(int, together ? 1 : 3);
  const void *from = POINTER(together ? 2 : 0);
  for (int row = 0; row < rows; row++) {
    int best = 0;
    for (int i = 1; i < columns; i++)
      if (get(TYPE(0), from, (int64_t)row * columns + i) > get(TYPE(0), from, (int64_t)row * columns + best)) best = i;
    put(INT64, POINTER(together ? 3 : 1), row, best);
  }
}

/* Rows x / rms(x) * scale, of x = a + b + bias; `b` and `bias` may be null. Writes x and 1 / rms(x), too, unless these are null. */
struct norm { enum type type; void *to, *x, *a, *b, *bias, *scale; int length; float epsilon; float *inverses; };
static double normed(const struct norm *it, int64_t first, int i) {
  double x = get(it->type, it->a, first + i);
  if (it->b) x += get(it->type, it->b, first + i);
  return it->bias ? x + get(it->type, it->bias, i) : x;
}
static void root_mean_square_norm(const struct norm *it, int rows) {
  for (int row = 0; row < rows; row++) {
    int64_t first = (int64_t)row * it->length;
    double squares = 0;
    for (int i = 0; i < it->length; i++) squares += normed(it, first, i) * normed(it, first, i);
    double factor = 1 / sqrt(squares / it->length + it->epsilon);
    if (it->inverses) it->inverses[row] = factor;
    for (int i = 0; i < it->length; i++) {
      double x = normed(it, first, i);
      put(it->type, it->to, first + i, x * factor * get(it->type, it->scale, i));
      if (it->x) put(it->type, it->x, first + i, x);
    }
  }
}

/* <from, accumulator, to, whether without mean>(to, mean, 1 / deviation, from, rows, length, epsilon, scale, shift, rows of scale, skip, bias, sum) */
static void layer_norm(const struct launch *launch) {
  if (!FLAG(3) || TYPE(0) != TYPE(2) || strcmp(launch->kernel.template[1], "float") || POINTER(1) || ARGUMENT(int, 9)) lacks("LayerNormalization with more than a scale");
  struct norm norm = {TYPE(0), POINTER(0), POINTER(12), POINTER(3), POINTER(10), POINTER(11), POINTER(7), ARGUMENT(int, 5), ARGUMENT(float, 6), POINTER(2)};
  root_mean_square_norm(&norm, ARGUMENT(int, 4));
}

/* <type, threads, at once, whether without mean>(to, sum, from, skip, bias, scale, shift, epsilon, length, numbers of skip), a block for each row */
static void skip_layer_norm(const struct launch *launch) {
  int rows = launch->grid.x, length = ARGUMENT(int, 8);
  if (!FLAG(3) || ARGUMENT(int, 9) != rows * length) lacks("SkipLayerNormalization with a mean, or with a skip for several rows");
  struct norm norm = {TYPE(0), POINTER(0), POINTER(1), POINTER(2), POINTER(3), POINTER(4), POINTER(5), length, ARGUMENT(float, 7), 0};
  root_mean_square_norm(&norm, rows);
}

/*
 * <type>(to, from, cosines, sines, positions, lengths of the past, time, heads, size of a head, numbers that turn, rows of
 * cosines, kind of positions, whether pairs are neighbours, strides of from, of to), strides by batch, head and time; blocks are
 * [time, batch, heads]
 */
static void rotary(const struct launch *launch) {
  struct strides { int batch, head, time, one; } from = ARGUMENT(struct strides, 13), to = ARGUMENT(struct strides, 14);
  int time = ARGUMENT(int, 6), heads = ARGUMENT(int, 7), size = ARGUMENT(int, 8), turning = ARGUMENT(int, 9), kind = ARGUMENT(int, 11);
  int half = turning / 2;
  if (kind != 1 || ARGUMENT(uint8_t, 12)) lacks("RotaryEmbedding of neighbours, or with positions that count from a number");
  for (unsigned batch = 0; batch < launch->grid.y; batch++)
    for (int t = 0; t < time; t++)
      for (int head = 0; head < heads; head++) {
        int64_t x = (int64_t)batch * from.batch + t * from.time + head * from.head;
        int64_t y = (int64_t)batch * to.batch + t * to.time + head * to.head;
        int64_t row = get(INT64, POINTER(4), batch * time + t) * half;
        for (int i = 0; i < size; i++) {
          double value = get(TYPE(0), POINTER(1), x + i);
          if (i < turning) {
            double other = get(TYPE(0), POINTER(1), x + (i + half) % turning) * (i < half ? -1 : 1);
            value = value * get(TYPE(0), POINTER(2), row + i % half) + other * get(TYPE(0), POINTER(3), row + i % half);
          }
          put(TYPE(0), POINTER(0), y + i, value);
        }
      }
}

static const struct { const char *name; emulation *emulate; } KERNELS[] = {
    {"_UnaryElementWise", unary},
    {"_BinaryElementWiseSimple", binary_simple},
    {"_BinaryElementWise", binary},
    {"_BinaryElementWiseRhsPerChannelBatch1", binary_per_channel},
    {"_BinaryElementWiseRhsPerChannelBatchN", binary_per_channel},
    {"_TenaryElementWiseSimple", where_simple},
    {"_TenaryElementWise", where},
    {"_Clip", clip},
    {"reduce_matrix_rows_kernel", sum_rows},
    {"reduce_matrix_columns_kernel", sum_columns},
    {"_CumSumKernel", running_sum},
    {"softmax_warp_forward", softmax},
    {"softmax_block_forward", softmax_long},
    {"arg_min_max_last_axis_kernel", largest_position},
    {"arg_min_max_last_axis_cooperative_kernel", largest_position},
    {"cuApplyLayerNorm", layer_norm},
    {"SkipLayerNormKernelSmall", skip_layer_norm},
    {"RotaryEmbeddingBSNH", rotary},
};

emulation *arithmetic_of(const struct signature *kernel) {
  for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++) {
    if (strcmp(KERNELS[i].name, kernel->name)) continue;
    emulation *found = KERNELS[i].emulate;
    const char *const *template = kernel->template;
    if (found == unary && !unary_of(template[2])) return 0;
    if (found == binary_simple && !binary_of(template[5])) return 0;
    if ((found == binary || found == binary_per_channel) && !binary_of(template[3])) return 0;
    return found;
  }
  emulation *attention = attention_of(kernel);
  return attention ? attention : movement_of(kernel);
}
