/*
 * Matrix products of cuBLAS: counted, and computed where REHEARSAL_ARITHMETIC says so. Matrices are column by column, as in
 * Fortran. Sums are in float64 and rounded once; a GPU's TF32 is not imitated.
 */
#include "rehearsal.h"
#include <stdlib.h>

/* Converts cudaDataType, and cublasComputeType_t where it decides the type of alpha and beta. */
static enum type type_by_number(int number) {
  switch (number) {
    case 0: return FLOAT;
    case 1: return DOUBLE;
    case 2: return FLOAT16;
    case 14: return BFLOAT16;
    default: lacks("a matrix product of another type than float32, float64 and half precision");
  }
}
enum { COMPUTE_DOUBLE = 70, COMPUTE_DOUBLE_PEDANTIC = 71 };
static double scale(int compute, const void *number) {
  return compute == COMPUTE_DOUBLE || compute == COMPUTE_DOUBLE_PEDANTIC ? *(const double *)number : *(const float *)number;
}

struct matrix {
  enum type type;
  const void *numbers;
  int transposed, leading;
};

/* Returns the numbers of op(matrix), [rows, columns], row by row. */
static double *numbers_of(struct matrix it, int rows, int columns) {
  double *to = malloc(sizeof(double) * rows * columns);
  const void *from = readable(it.numbers);
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) to[(int64_t)i * columns + j] = get(it.type, from, it.transposed ? (int64_t)i * it.leading + j : (int64_t)j * it.leading + i);
  return to;
}

/* to = alpha op(left) op(right) + beta to; [rows, inner] times [inner, columns]. `to` is not read if beta is 0. */
static void multiply(int rows, int columns, int inner, double alpha, struct matrix left, struct matrix right, double beta, enum type type, void *to, int leading) {
  double *a = numbers_of(left, rows, inner), *b = numbers_of(right, inner, columns), *row = malloc(sizeof(double) * columns);
  to = readable(to);
  for (int i = 0; i < rows; i++) {
    for (int j = 0; j < columns; j++) row[j] = 0;
    for (int k = 0; k < inner; k++) {
      const double x = a[(int64_t)i * inner + k], *y = b + (int64_t)k * columns;
      for (int j = 0; j < columns; j++) row[j] += x * y[j]; /* the compiler vectorizes this loop */
    }
    for (int j = 0; j < columns; j++) {
      int64_t at = (int64_t)j * leading + i;
      put(type, to, at, alpha * row[j] + (beta ? beta * get(type, to, at) : 0));
    }
  }
  free(a);
  free(b);
  free(row);
}

enum { FLOAT_NUMBER = 0, BFLOAT16_NUMBER = 14, DOUBLE_NUMBER = 1, COMPUTE_FLOAT = 68 };
static struct matrix matrix(int type, const void *numbers, int64_t offset, int transposed, int leading) {
  enum type known = type_by_number(type);
  return (struct matrix){known, (const char *)numbers + offset * (int64_t)bytes_of(known), transposed, leading};
}

/* Numbers and their types, [rows, inner] times [inner, columns], as cuBLAS is asked for them; alpha and beta are read when it is. */
struct operand { const void *numbers; int type, transposed, leading; long long step; };
struct product {
  int rows, columns, inner, batch;
  double alpha, beta;
  struct operand left, right, to;
  int by_address; /* `numbers` are addresses in device memory, one for each of the batch */
};
static void run(void *data, int replayed) {
  const struct product *it = data;
  for (int i = 0; computes && i < it->batch; i++) {
    const struct operand *all[] = {&it->left, &it->right, &it->to};
    struct matrix matrices[3];
    for (int j = 0; j < 3; j++) {
      const void *numbers = it->by_address ? ((const void **)readable(all[j]->numbers))[i] : all[j]->numbers;
      matrices[j] = matrix(all[j]->type, numbers, it->by_address ? 0 : i * all[j]->step, all[j]->transposed, all[j]->leading);
    }
    multiply(it->rows, it->columns, it->inner, it->alpha, matrices[0], matrices[1], it->beta, matrices[2].type, (void *)matrices[2].numbers, it->to.leading);
  }
}
static int ask(struct handle *handle, struct product product) {
  struct product *asked = malloc(sizeof *asked);
  *asked = product;
  return perform(handle->stream, PRODUCTS, run, asked);
}

/* A batch of products whose matrices are `step` numbers apart. */
API int cublasGemmStridedBatchedEx(struct handle *handle, int trans_a, int trans_b, int m, int n, int k, const void *alpha, const void *a, int a_type, int lda, long long a_step,
                                   const void *b, int b_type, int ldb, long long b_step, const void *beta, void *c, int c_type, int ldc, long long c_step, int batch, int compute, int algorithm) {
  return ask(handle, (struct product){m, n, k, batch, scale(compute, alpha), scale(compute, beta), {a, a_type, trans_a, lda, a_step}, {b, b_type, trans_b, ldb, b_step}, {c, c_type, 0, ldc, c_step}, 0});
}
API int cublasGemmEx(struct handle *handle, int trans_a, int trans_b, int m, int n, int k, const void *alpha, const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                     const void *beta, void *c, int c_type, int ldc, int compute, int algorithm) {
  return cublasGemmStridedBatchedEx(handle, trans_a, trans_b, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c, c_type, ldc, 0, 1, compute, algorithm);
}
API int cublasSgemm_v2(struct handle *handle, int trans_a, int trans_b, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc) {
  return cublasGemmEx(handle, trans_a, trans_b, m, n, k, alpha, a, FLOAT_NUMBER, lda, b, FLOAT_NUMBER, ldb, beta, c, FLOAT_NUMBER, ldc, COMPUTE_FLOAT, 0);
}
API int cublasDgemm_v2(struct handle *handle, int trans_a, int trans_b, int m, int n, int k, const double *alpha, const double *a, int lda, const double *b, int ldb, const double *beta, double *c, int ldc) {
  return cublasGemmEx(handle, trans_a, trans_b, m, n, k, alpha, a, DOUBLE_NUMBER, lda, b, DOUBLE_NUMBER, ldb, beta, c, DOUBLE_NUMBER, ldc, COMPUTE_DOUBLE, 0);
}
API int cublasSgemmStridedBatched(struct handle *handle, int trans_a, int trans_b, int m, int n, int k, const float *alpha, const float *a, int lda, long long a_step, const float *b, int ldb, long long b_step,
                                  const float *beta, float *c, int ldc, long long c_step, int batch) {
  return cublasGemmStridedBatchedEx(handle, trans_a, trans_b, m, n, k, alpha, a, FLOAT_NUMBER, lda, a_step, b, FLOAT_NUMBER, ldb, b_step, beta, c, FLOAT_NUMBER, ldc, c_step, batch, COMPUTE_FLOAT, 0);
}
/* Matrices by address; the addresses are in device memory. */
API int cublasGemmBatchedEx(struct handle *handle, int trans_a, int trans_b, int m, int n, int k, const void *alpha, const void *const *a, int a_type, int lda, const void *const *b, int b_type, int ldb,
                            const void *beta, void *const *c, int c_type, int ldc, int batch, int compute, int algorithm) {
  return ask(handle, (struct product){m, n, k, batch, scale(compute, alpha), scale(compute, beta), {a, a_type, trans_a, lda, 0}, {b, b_type, trans_b, ldb, 0}, {c, c_type, 0, ldc, 0}, 1});
}
API int cublasSgemmBatched(struct handle *handle, int trans_a, int trans_b, int m, int n, int k, const float *alpha, const float *const *a, int lda, const float *const *b, int ldb,
                           const float *beta, float *const *c, int ldc, int batch) {
  return cublasGemmBatchedEx(handle, trans_a, trans_b, m, n, k, alpha, (const void *const *)a, FLOAT_NUMBER, lda, (const void *const *)b, FLOAT_NUMBER, ldb, beta, (void *const *)c, FLOAT_NUMBER, ldc, batch, COMPUTE_FLOAT, 0);
}
/* to = alpha op(left) + beta op(right), which ONNX Runtime uses to transpose. */
struct sum { int rows, columns; float alpha, beta; struct operand left, right, to; };
static void add(void *data, int replayed) {
  const struct sum *it = data;
  const float *left = readable(it->left.numbers), *right = readable(it->right.numbers);
  float *to = readable(it->to.numbers);
  for (int i = 0; computes && i < it->rows; i++)
    for (int j = 0; j < it->columns; j++) {
      double x = it->alpha ? it->alpha * left[it->left.transposed ? (int64_t)i * it->left.leading + j : (int64_t)j * it->left.leading + i] : 0;
      double y = it->beta ? it->beta * right[it->right.transposed ? (int64_t)i * it->right.leading + j : (int64_t)j * it->right.leading + i] : 0;
      to[(int64_t)j * it->to.leading + i] = x + y;
    }
}
API int cublasSgeam(struct handle *handle, int trans_a, int trans_b, int m, int n, const float *alpha, const float *a, int lda, const float *beta, const float *b, int ldb, float *c, int ldc) {
  struct sum *asked = malloc(sizeof *asked);
  *asked = (struct sum){m, n, *alpha, *beta, {a, FLOAT_NUMBER, trans_a, lda, 0}, {b, FLOAT_NUMBER, trans_b, ldb, 0}, {c, FLOAT_NUMBER, 0, ldc, 0}};
  return perform(handle->stream, COUNTERS, add, asked);
}
