/*
 * cuBLAS, cuBLASLt and cuDNN: every function that ONNX Runtime's CUDA provider calls or looks up, except for the matrix products in
 * products.c. They succeed, do nothing and are counted; the calling convention allows calling a function without parameters with any
 * arguments. A function that writes through a parameter has its own implementation.
 */
#include "rehearsal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SUCCEEDS(name) API int name(void) { return 0; }
/* Functions whose arithmetic is not emulated. */
#define WORKS(name) API int name(void) { if (computes) lacks(#name); return 0; }
#define PRODUCT(name) API int name(struct handle *handle) { if (computes) lacks(#name); return perform(handle->stream, PRODUCTS, 0, 0); }
#define OPERATION(name) API int name(struct handle *handle) { if (computes) lacks(#name); return perform(handle->stream, CUDNN, 0, 0); }
#define SETS_STREAM(name) API int name(struct handle *handle, void *stream) { handle->stream = stream; return 0; }
#define CREATES(name) API int name(void **to) { *to = calloc(1, 8); return 0; }
#define RELEASES(name) API int name(void *it) { free(it); return 0; }
/* cuDNN's graph interface (convolutions, fused attention): ONNX Runtime then uses its own kernels. */
#define NOT_SUPPORTED(name) API int name(void) { return 3000; }
#define ENOUGH_FOR_A_RESULT 96

CREATES(cublasCreate_v2)
WORKS(cublasDcopy_v2)
RELEASES(cublasDestroy_v2)
WORKS(cublasDgeam)
PRODUCT(cublasDgemmBatched)
PRODUCT(cublasDgemmStridedBatched)
WORKS(cublasDgetrfBatched)
WORKS(cublasDgetriBatched)
API int cublasGetMathMode(void *handle, int *mode) { *mode = 0; return 0; }
API const char *cublasGetStatusName(int status) { return status ? "CUBLAS_STATUS_INTERNAL_ERROR" : "CUBLAS_STATUS_SUCCESS"; }
API const char *cublasGetStatusString(int status) { return status ? "an internal error" : "success"; }
CREATES(cublasLtCreate)
RELEASES(cublasLtDestroy)
/* The stream is the last of sixteen parameters. */
API int cublasLtMatmul(void *handle, void *product, void *alpha, void *a, void *a_layout, void *b, void *b_layout, void *beta, void *c, void *c_layout, void *d, void *d_layout,
                       void *algorithm, void *workspace, size_t bytes, void *stream) {
  if (computes) lacks("cublasLtMatmul");
  return perform(stream, PRODUCTS, 0, 0);
}
SUCCEEDS(cublasLtMatmulAlgoConfigSetAttribute)
API int cublasLtMatmulAlgoGetHeuristic(void *handle, void *product, void *a, void *b, void *c, void *d, void *preference, int wanted, void *results, int *found) {
  memset(results, 0, ENOUGH_FOR_A_RESULT);
  *found = 1;
  return 0;
}
SUCCEEDS(cublasLtMatmulAlgoInit)
CREATES(cublasLtMatmulDescCreate)
RELEASES(cublasLtMatmulDescDestroy)
SUCCEEDS(cublasLtMatmulDescSetAttribute)
CREATES(cublasLtMatmulPreferenceCreate)
RELEASES(cublasLtMatmulPreferenceDestroy)
SUCCEEDS(cublasLtMatmulPreferenceSetAttribute)
CREATES(cublasLtMatrixLayoutCreate)
RELEASES(cublasLtMatrixLayoutDestroy)
SUCCEEDS(cublasLtMatrixLayoutSetAttribute)
WORKS(cublasLtMatrixTransform)
CREATES(cublasLtMatrixTransformDescCreate)
RELEASES(cublasLtMatrixTransformDescDestroy)
WORKS(cublasScopy_v2)
SUCCEEDS(cublasSetMathMode)
SETS_STREAM(cublasSetStream_v2)
WORKS(cublasSgetrfBatched)
WORKS(cublasSgetriBatched)
WORKS(cublasSscal_v2)
OPERATION(cudnnActivationForward)
OPERATION(cudnnAddTensor)
NOT_SUPPORTED(cudnnBackendCreateDescriptor)
NOT_SUPPORTED(cudnnBackendDestroyDescriptor)
NOT_SUPPORTED(cudnnBackendExecute)
NOT_SUPPORTED(cudnnBackendFinalize)
NOT_SUPPORTED(cudnnBackendGetAttribute)
NOT_SUPPORTED(cudnnBackendSetAttribute)
OPERATION(cudnnBatchNormalizationForwardInference)
OPERATION(cudnnBatchNormalizationForwardTraining)
OPERATION(cudnnConvolutionBiasActivationForward)
OPERATION(cudnnConvolutionForward)
CREATES(cudnnCreate)
CREATES(cudnnCreateActivationDescriptor)
CREATES(cudnnCreateConvolutionDescriptor)
CREATES(cudnnCreateDropoutDescriptor)
CREATES(cudnnCreateFilterDescriptor)
CREATES(cudnnCreateLRNDescriptor)
CREATES(cudnnCreatePoolingDescriptor)
CREATES(cudnnCreateRNNDataDescriptor)
CREATES(cudnnCreateRNNDescriptor)
SUCCEEDS(cudnnDeriveBNTensorDescriptor)
RELEASES(cudnnDestroy)
RELEASES(cudnnDestroyActivationDescriptor)
RELEASES(cudnnDestroyConvolutionDescriptor)
RELEASES(cudnnDestroyDropoutDescriptor)
RELEASES(cudnnDestroyFilterDescriptor)
RELEASES(cudnnDestroyLRNDescriptor)
RELEASES(cudnnDestroyPoolingDescriptor)
RELEASES(cudnnDestroyRNNDataDescriptor)
RELEASES(cudnnDestroyRNNDescriptor)
RELEASES(cudnnDestroyReduceTensorDescriptor)
RELEASES(cudnnDestroyTensorDescriptor)
API int cudnnDropoutGetStatesSize(void *handle, size_t *bytes) { *bytes = 0; return 0; }
NOT_SUPPORTED(cudnnFindConvolutionForwardAlgorithmEx)
NOT_SUPPORTED(cudnnGetConvolutionForwardAlgorithm_v7)
NOT_SUPPORTED(cudnnGetConvolutionForwardWorkspaceSize)
API const char *cudnnGetErrorString(int status) { return status ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_SUCCESS"; }
API void cudnnGetLastErrorString(char *to, size_t room) { if (room) *to = 0; }
NOT_SUPPORTED(cudnnGetRNNTempSpaceSizes)
NOT_SUPPORTED(cudnnGetRNNWeightParams)
API int cudnnGetReductionIndicesSize(void *handle, void *reduction, void *from, void *to, size_t *bytes) { *bytes = 0; return 0; }
API int cudnnGetReductionWorkspaceSize(void *handle, void *reduction, void *from, void *to, size_t *bytes) { *bytes = 0; return 0; }
API int cudnnGetStream(struct handle *handle, void **to) { *to = handle->stream; return 0; }
NOT_SUPPORTED(cudnnGetTensorNdDescriptor)
API size_t cudnnGetVersion(void) { return 92000; }
OPERATION(cudnnLRNCrossChannelForward)
OPERATION(cudnnPoolingForward)
OPERATION(cudnnRNNForward)
SUCCEEDS(cudnnSetActivationDescriptor)
SUCCEEDS(cudnnSetConvolutionGroupCount)
SUCCEEDS(cudnnSetConvolutionMathType)
SUCCEEDS(cudnnSetConvolutionNdDescriptor)
SUCCEEDS(cudnnSetDropoutDescriptor)
SUCCEEDS(cudnnSetFilterNdDescriptor)
SUCCEEDS(cudnnSetLRNDescriptor)
SUCCEEDS(cudnnSetPoolingNdDescriptor)
SUCCEEDS(cudnnSetRNNDataDescriptor)
SUCCEEDS(cudnnSetRNNDescriptor_v8)
SETS_STREAM(cudnnSetStream)
OPERATION(cudnnSoftmaxForward)

/* Tensors, and tensors some of whose axes are reduced to 1. */
#define MOST_AXES 8
struct tensor {
  enum type type;
  int axes, sizes[MOST_AXES], strides[MOST_AXES];
};
enum reduction { ADD, MULTIPLY, MINIMUM, MAXIMUM, LARGEST_MAGNITUDE, MEAN, SUM_OF_MAGNITUDES, ROOT_OF_SQUARES };

API int cudnnCreateTensorDescriptor(struct tensor **to) { *to = calloc(1, sizeof **to); return 0; }
API int cudnnSetTensorNdDescriptor(struct tensor *it, int type, int axes, const int *sizes, const int *strides) {
  it->type = type == 0 ? FLOAT : type == 1 ? DOUBLE : UNKNOWN;
  it->axes = axes;
  for (int i = 0; i < axes && i < MOST_AXES; i++) it->sizes[i] = sizes[i], it->strides[i] = strides[i];
  return 0;
}
API int cudnnCreateReduceTensorDescriptor(enum reduction **to) { *to = calloc(1, sizeof **to); return 0; }
API int cudnnSetReduceTensorDescriptor(enum reduction *it, enum reduction operation, int compute, int nan, int indices, int index_type) { *it = operation; return 0; }

/* Returns the index in `to` of number `i` of `from`; reduced axes of `to` have length 1. */
static int64_t reduced_place(const struct tensor *from, const struct tensor *to, int64_t i, int64_t *place) {
  int64_t at = 0;
  *place = 0;
  for (int axis = from->axes - 1; axis >= 0; axis--) {
    int along = i % from->sizes[axis];
    i /= from->sizes[axis];
    *place += (int64_t)along * from->strides[axis];
    if (to->sizes[axis] > 1) at += (int64_t)along * to->strides[axis];
  }
  return at;
}

struct reduced {
  enum reduction operation;
  struct tensor from, to;
  const void *a;
  void *c;
};
static void reduce(void *data, int replayed) {
  if (!computes) return;
  struct reduced *it = data;
  enum reduction operation = it->operation;
  const struct tensor *from = &it->from, *to = &it->to;
  if ((operation != ADD && operation != MAXIMUM && operation != MEAN) || from->axes > MOST_AXES || from->axes != to->axes) lacks("cudnnReduceTensor with this operation");
  int64_t numbers = 1, results = 1;
  for (int axis = 0; axis < from->axes; axis++) numbers *= from->sizes[axis], results *= to->sizes[axis];
  double *totals = malloc(sizeof(double) * results);
  for (int64_t i = 0; i < results; i++) totals[i] = operation == MAXIMUM ? -INFINITY : 0;
  for (int64_t i = 0; i < numbers; i++) {
    int64_t place, at = reduced_place(from, to, i, &place);
    double value = get(from->type, readable(it->a), place);
    totals[at] = operation == MAXIMUM ? fmax(totals[at], value) : totals[at] + value;
  }
  for (int64_t i = 0; i < results; i++) put(to->type, readable(it->c), i, operation == MEAN ? totals[i] / (numbers / results) : totals[i]);
  free(totals);
}

API int cudnnReduceTensor(struct handle *handle, const enum reduction *operation, void *indices, size_t index_bytes, void *workspace, size_t workspace_bytes,
                          const void *alpha, const struct tensor *from, const void *a, const void *beta, const struct tensor *to, void *c) {
  struct reduced *asked = malloc(sizeof *asked);
  *asked = (struct reduced){*operation, *from, *to, a, c};
  return perform(handle->stream, CUDNN, reduce, asked);
}
