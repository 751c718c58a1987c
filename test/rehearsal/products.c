/*
 * Matrix products of cuBLAS: counted, and computed where REHEARSAL_ARITHMETIC says so. Matrices are column by column, as in
 * Fortran. Sums are in float64 and rounded once; a GPU's TF32 is not imitated.
 */
#include "rehearsal.h"
#include <stdlib.h>

/* cudaDataType, and cublasComputeType_t where it decides the type of alpha and beta. */
static enum type type_by_number(int number) {
  switch (number) {
    case 0: return FLOAT;
    case 1: return DOUBLE;
    case 14: return BFLOAT16;
    default: lacks("a matrix product of another type than float32, float64 and bfloat16");
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

/* The numbers of op(matrix), [rows, columns], row by row. */
static double *numbers_of(struct matrix it, int rows, int columns) {
  double *to = malloc(sizeof(double) * rows * columns);
  const void *from = readable(it.numbers);
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) to[(int64_t)i * columns + j] = get(it.type, from, it.transposed ? (int64_t)i * it.leading + j : (int64_t)j * it.leading + i);
  return to;
}

/* to = alpha op(left) op(right) + beta to; [rows, inner] times [inner, columns]. What `to` holds is not read where beta is 0. */
static void multiply(int rows, int columns, int inner, double alpha, struct matrix left, struct matrix right, double beta, enum type type, void *to, int leading) {
  double *a = numbers_of(left, rows, inner), *b = numbers_of(right, inner, columns), *row = malloc(sizeof(double) * columns);
  to = readable(to);
  for (int i = 0; i < rows; i++) {
    for (int j = 0; j < columns; j++) row[j] = 0;
    for (int k = 0; k < inner; k++) {
      const double x = a[(int64_t)i * inner + k], *y = b + (int64_t)k * columns;
      for (int j = 0; j < columns; j++) row[j] += x * y[j]; /* a loop that the compiler makes vectors of */
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

/* Of `count` products one after the other, whose matrices are `step` numbers apart. */
API int cublasGemmStridedBatchedEx(void *handle, int trans_a, int trans_b, int m, int n, int k, const void *alpha, const void *a, int a_type, int lda, long long a_step,
                                   const void *b, int b_type, int ldb, long long b_step, const void *beta, void *c, int c_type, int ldc, long long c_step, int batch, int compute, int algorithm) {
  count(PRODUCTS, 1);
  for (int i = 0; computes && i < batch; i++)
    multiply(m, n, k, scale(compute, alpha), matrix(a_type, a, i * a_step, trans_a, lda), matrix(b_type, b, i * b_step, trans_b, ldb), scale(compute, beta),
             type_by_number(c_type), (char *)c + i * c_step * (int64_t)bytes_of(type_by_number(c_type)), ldc);
  return 0;
}
API int cublasGemmEx(void *handle, int trans_a, int trans_b, int m, int n, int k, const void *alpha, const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                     const void *beta, void *c, int c_type, int ldc, int compute, int algorithm) {
  return cublasGemmStridedBatchedEx(handle, trans_a, trans_b, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c, c_type, ldc, 0, 1, compute, algorithm);
}
API int cublasSgemm_v2(void *handle, int trans_a, int trans_b, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc) {
  return cublasGemmEx(handle, trans_a, trans_b, m, n, k, alpha, a, FLOAT_NUMBER, lda, b, FLOAT_NUMBER, ldb, beta, c, FLOAT_NUMBER, ldc, COMPUTE_FLOAT, 0);
}
API int cublasDgemm_v2(void *handle, int trans_a, int trans_b, int m, int n, int k, const double *alpha, const double *a, int lda, const double *b, int ldb, const double *beta, double *c, int ldc) {
  return cublasGemmEx(handle, trans_a, trans_b, m, n, k, alpha, a, DOUBLE_NUMBER, lda, b, DOUBLE_NUMBER, ldb, beta, c, DOUBLE_NUMBER, ldc, COMPUTE_DOUBLE, 0);
}
API int cublasSgemmStridedBatched(void *handle, int trans_a, int trans_b, int m, int n, int k, const float *alpha, const float *a, int lda, long long a_step, const float *b, int ldb, long long b_step,
                                  const float *beta, float *c, int ldc, long long c_step, int batch) {
  return cublasGemmStridedBatchedEx(handle, trans_a, trans_b, m, n, k, alpha, a, FLOAT_NUMBER, lda, a_step, b, FLOAT_NUMBER, ldb, b_step, beta, c, FLOAT_NUMBER, ldc, c_step, batch, COMPUTE_FLOAT, 0);
}
/* Matrices by address; the addresses are in device memory. */
API int cublasGemmBatchedEx(void *handle, int trans_a, int trans_b, int m, int n, int k, const void *alpha, const void *const *a, int a_type, int lda, const void *const *b, int b_type, int ldb,
                            const void *beta, void *const *c, int c_type, int ldc, int batch, int compute, int algorithm) {
  count(PRODUCTS, 1);
  if (!computes) return 0;
  a = readable(a), b = readable(b), c = readable(c);
  for (int i = 0; i < batch; i++)
    multiply(m, n, k, scale(compute, alpha), matrix(a_type, a[i], 0, trans_a, lda), matrix(b_type, b[i], 0, trans_b, ldb), scale(compute, beta), type_by_number(c_type), c[i], ldc);
  return 0;
}
API int cublasSgemmBatched(void *handle, int trans_a, int trans_b, int m, int n, int k, const float *alpha, const float *const *a, int lda, const float *const *b, int ldb,
                           const float *beta, float *const *c, int ldc, int batch) {
  return cublasGemmBatchedEx(handle, trans_a, trans_b, m, n, k, alpha, (const void *const *)a, FLOAT_NUMBER, lda, (const void *const *)b, FLOAT_NUMBER, ldb, beta, (void *const *)c, FLOAT_NUMBER, ldc, batch, COMPUTE_FLOAT, 0);
}
/* to = alpha op(left) + beta op(right), by which ONNX Runtime transposes. */
API int cublasSgeam(void *handle, int trans_a, int trans_b, int m, int n, const float *alpha, const float *a, int lda, const float *beta, const float *b, int ldb, float *c, int ldc) {
  if (!computes) return 0;
  const float *left = readable(a), *right = readable(b);
  float *to = readable(c);
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      double x = *alpha ? *alpha * left[trans_a ? (int64_t)i * lda + j : (int64_t)j * lda + i] : 0;
      double y = *beta ? *beta * right[trans_b ? (int64_t)i * ldb + j : (int64_t)j * ldb + i] : 0;
      to[(int64_t)j * ldc + i] = x + y;
    }
  return 0;
}
