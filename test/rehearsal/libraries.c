/*
 * cuBLAS, cuBLASLt and cuDNN: every function that ONNX Runtime's CUDA provider calls or looks up. They succeed, do nothing and
 * are counted; the calling convention lets a function without parameters be called with any. What is written through a
 * parameter has a function of its own.
 */
#include "rehearsal.h"
#include <stdlib.h>
#include <string.h>

#define SUCCEEDS(name) API int name(void) { return 0; }
#define PRODUCT(name) API int name(void) { count(PRODUCTS, 1); return 0; }
#define OPERATION(name) API int name(void) { count(CUDNN, 1); return 0; }
#define CREATES(name) API int name(void **to) { *to = calloc(1, 8); return 0; }
#define RELEASES(name) API int name(void *it) { free(it); return 0; }
/* cuDNN's graph interface (convolutions, fused attention): ONNX Runtime then takes a kernel of its own. */
#define NOT_SUPPORTED(name) API int name(void) { return 3000; }
#define ENOUGH_FOR_A_RESULT 96

CREATES(cublasCreate_v2)
SUCCEEDS(cublasDcopy_v2)
RELEASES(cublasDestroy_v2)
SUCCEEDS(cublasDgeam)
PRODUCT(cublasDgemmBatched)
PRODUCT(cublasDgemmStridedBatched)
PRODUCT(cublasDgemm_v2)
SUCCEEDS(cublasDgetrfBatched)
SUCCEEDS(cublasDgetriBatched)
PRODUCT(cublasGemmBatchedEx)
PRODUCT(cublasGemmEx)
PRODUCT(cublasGemmStridedBatchedEx)
API int cublasGetMathMode(void *handle, int *mode) { *mode = 0; return 0; }
API const char *cublasGetStatusName(int status) { return status ? "CUBLAS_STATUS_INTERNAL_ERROR" : "CUBLAS_STATUS_SUCCESS"; }
API const char *cublasGetStatusString(int status) { return status ? "an internal error" : "success"; }
CREATES(cublasLtCreate)
RELEASES(cublasLtDestroy)
PRODUCT(cublasLtMatmul)
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
SUCCEEDS(cublasLtMatrixTransform)
CREATES(cublasLtMatrixTransformDescCreate)
RELEASES(cublasLtMatrixTransformDescDestroy)
SUCCEEDS(cublasScopy_v2)
SUCCEEDS(cublasSetMathMode)
SUCCEEDS(cublasSetStream_v2)
SUCCEEDS(cublasSgeam)
PRODUCT(cublasSgemmBatched)
PRODUCT(cublasSgemmStridedBatched)
PRODUCT(cublasSgemm_v2)
SUCCEEDS(cublasSgetrfBatched)
SUCCEEDS(cublasSgetriBatched)
SUCCEEDS(cublasSscal_v2)
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
CREATES(cudnnCreateReduceTensorDescriptor)
CREATES(cudnnCreateTensorDescriptor)
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
API int cudnnGetStream(void *handle, void **to) { *to = 0; return 0; }
NOT_SUPPORTED(cudnnGetTensorNdDescriptor)
API size_t cudnnGetVersion(void) { return 92000; }
OPERATION(cudnnLRNCrossChannelForward)
OPERATION(cudnnPoolingForward)
OPERATION(cudnnRNNForward)
OPERATION(cudnnReduceTensor)
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
SUCCEEDS(cudnnSetReduceTensorDescriptor)
SUCCEEDS(cudnnSetStream)
SUCCEEDS(cudnnSetTensorNdDescriptor)
OPERATION(cudnnSoftmaxForward)
