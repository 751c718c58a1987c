/*
 * Launches. Kernels are counted by name and do nothing, but for the few whose results are sizes of other tensors: they do on
 * the host what they would do on a device, else a later Split, Slice or Loop would fail. Streams, events and graphs are names
 * without anything behind them: everything has happened when a call returns.
 */
#define _GNU_SOURCE
#include "rehearsal.h"
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kernel {
  const void *host; /* the address that a launch names it by */
  const char *name; /* mangled */
  uint64_t launches;
  emulation *emulate;
};

/* By the address, open addressing; twice as large when half full. */
static struct kernel *kernels;
static size_t kernel_count, kernel_room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct kernel *slot(struct kernel *table, size_t room, const void *host) {
  size_t i = ((uintptr_t)host >> 4) * 0x9E3779B97F4A7C15u & (room - 1);
  while (table[i].host && table[i].host != host) i = (i + 1) & (room - 1);
  return &table[i];
}

API void __cudaRegisterFunction(void **handle, const char *host, char *device_name, const char *name, int threads, void *a, void *b, void *c, void *d, int *e) {
  pthread_mutex_lock(&lock);
  if (2 * kernel_count >= kernel_room) {
    size_t room = kernel_room ? 2 * kernel_room : 1 << 16;
    struct kernel *table = calloc(room, sizeof *table);
    for (size_t i = 0; i < kernel_room; i++)
      if (kernels[i].host) *slot(table, room, kernels[i].host) = kernels[i];
    free(kernels);
    kernels = table;
    kernel_room = room;
  }
  struct kernel *it = slot(kernels, kernel_room, host);
  if (!it->host) kernel_count++;
  *it = (struct kernel){host, name, 0, emulation_of(name)};
  pthread_mutex_unlock(&lock);
}

static cudaError_t launch(const void *host, void **arguments) {
  count(LAUNCHES, 1);
  pthread_mutex_lock(&lock);
  struct kernel *it = kernel_room ? slot(kernels, kernel_room, host) : 0;
  struct kernel known = it && it->host ? *it : (struct kernel){0};
  if (known.host) it->launches++;
  pthread_mutex_unlock(&lock);
  if (known.emulate && arguments) known.emulate(arguments, known.name);
  return cudaSuccess;
}

/* For tests: writes "launches name" for each kernel that was launched since the last call, a line each, as much as there is room for. */
API int rehearsal_kernels(char *to, int room) {
  int written = 0;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < kernel_room; i++) {
    struct kernel *it = &kernels[i];
    if (it->launches == 0) continue;
    int more = snprintf(to + written, room - written, "%llu %s\n", (unsigned long long)it->launches, it->name);
    if (more >= room - written) break;
    written += more;
    it->launches = 0;
  }
  pthread_mutex_unlock(&lock);
  return written;
}

/* int64 addition, subtraction, multiplication and division, each side a tensor or one number. */
static void binary(void **arguments, const char *name) {
  const char *flags = strstr(name, "_BinaryElementWiseSimpleILb");
  int left_step = flags[27] == '1', right_step = flags[31] == '1';
  const int64_t *left = readable(*(void **)arguments[0]), *right = readable(*(void **)arguments[1]);
  int64_t *to = readable(*(void **)arguments[2]);
  int size = *(int *)arguments[4];
  int add = strstr(name, "OP_Add") != 0, subtract = strstr(name, "OP_Sub") != 0, multiply = strstr(name, "OP_Mul") != 0;
  for (int i = 0; i < size; i++) {
    int64_t x = left[left_step ? i : 0], y = right[right_step ? i : 0];
    to[i] = add ? x + y : subtract ? x - y : multiply ? x * y : y ? x / y : 0;
  }
}

/* Concatenation of int64 tensors that are equally long where they are joined. A DivMod begins with its divisor. */
static void concat(void **arguments, const char *name) {
  int joined = *(int *)arguments[0], inner = *(int *)arguments[1], each = *(int *)arguments[2];
  int64_t *to = readable(*(void **)arguments[3]);
  void **inputs = (void **)((char *)arguments[4] + 8); /* TArray: its size, then the pointers */
  int size = *(int *)arguments[5];
  for (int i = 0; i < size; i++) {
    int outer = i / joined, row = i % joined / inner, column = i % joined % inner;
    const int64_t *from = readable(inputs[row / each]);
    to[i] = from[(outer * each + row % each) * inner + column];
  }
}

/*
 * A token and its log-prob are read by the learner, which refuses a token that is not in the vocabulary and a log-prob that is not a
 * number: positions of largest entries are 0 here, and so are logarithms, not what lay there before.
 */
static void arg_max(void **arguments, const char *name) {
  int together = strstr(name, "cooperative") != 0; /* (rows, columns, from, to, ...) or (from, to, rows, columns) */
  int rows = *(int *)arguments[together ? 0 : 2];
  memset(readable(*(void **)arguments[together ? 3 : 1]), 0, sizeof(int64_t) * rows);
}
static void logarithm(void **arguments, const char *name) { memset(readable(*(void **)arguments[1]), 0, sizeof(float) * *(int64_t *)arguments[3]); }

emulation *emulation_of(const char *name) {
  if (strstr(name, "_BinaryElementWiseSimpleILb") && strstr(name, "ElllNS0_"))
    if (strstr(name, "OP_Add") || strstr(name, "OP_Sub") || strstr(name, "OP_Mul") || strstr(name, "OP_Div")) return binary;
  if (strstr(name, "arg_min_max_last_axis")) return arg_max;
  if (strstr(name, "_UnaryElementWiseIffNS0_6OP_LogIf") && strstr(name, "PKT_PT0_T1_l")) return logarithm;
  if (strstr(name, "_ConcatKernelSameConcatDimIlNS0_6TArray")) return concat;
  return 0;
}

API cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) { return launch(host, arguments); }
API cudaError_t cudaLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) { return launch(host, arguments); }
API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *how, const void *host, void **arguments) { return launch(host, arguments); }
API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) { return launch(kernel, arguments); }
API cudaError_t __cudaGetKernel(cudaKernel_t *to, const void *host) { *to = (cudaKernel_t)host; return cudaSuccess; }
API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void *data) { call(data); return cudaSuccess; }

/* What <<<...>>> compiles to around a launch. */
static __thread struct { dim3 grid, block; size_t shared; void *stream; } configured;
API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream) {
  configured.grid = grid, configured.block = block, configured.shared = shared, configured.stream = stream;
  return 0;
}
API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  *grid = configured.grid, *block = configured.block, *shared = configured.shared, *(void **)stream = configured.stream;
  return cudaSuccess;
}
API void **__cudaRegisterFatBinary(void *binary) { static void *handle[1]; return handle; }
API void __cudaRegisterFatBinaryEnd(void **handle) {}
API void __cudaUnregisterFatBinary(void **handle) {}
API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t bytes, int constant, int global) {}

API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *to, const void *host) {
  *to = (struct cudaFuncAttributes){.maxThreadsPerBlock = 1024, .numRegs = 32, .binaryVersion = 90, .ptxVersion = 90};
  return cudaSuccess;
}
API cudaError_t cudaFuncSetAttribute(const void *host, enum cudaFuncAttribute attribute, int value) { return cudaSuccess; }
API cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attribute, int value, int device) { return cudaSuccess; }
API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *to, const void *host, int threads, size_t shared, unsigned flags) { *to = 2; return cudaSuccess; }
API cudaError_t cudaLibraryLoadData(cudaLibrary_t *to, const void *code, enum cudaJitOption *a, void **b, unsigned c, enum cudaLibraryOption *d, void **e, unsigned f) { *to = malloc(8); return cudaSuccess; }
API cudaError_t cudaLibraryGetKernel(cudaKernel_t *to, cudaLibrary_t library, const char *name) { *to = (cudaKernel_t)name; return cudaSuccess; }
API cudaError_t cudaLibraryUnload(cudaLibrary_t library) { return cudaSuccess; }
API cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **to, unsigned version, unsigned long long flags, enum cudaDriverEntryPointQueryResult *found) {
  *to = 0;
  if (found) *found = cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
API int cuTensorMapEncodeTiled(void) { return 0; }

API cudaError_t cudaDeviceSynchronize(void) { count(SYNCHRONISATIONS, 1); return cudaSuccess; }
API cudaError_t cudaStreamSynchronize(cudaStream_t stream) { count(SYNCHRONISATIONS, 1); return cudaSuccess; }
API cudaError_t cudaEventSynchronize(cudaEvent_t event) { count(SYNCHRONISATIONS, 1); return cudaSuccess; }
API cudaError_t cudaStreamCreate(cudaStream_t *to) { *to = malloc(8); return cudaSuccess; }
API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *to, unsigned flags) { *to = malloc(8); return cudaSuccess; }
API cudaError_t cudaStreamDestroy(cudaStream_t stream) { free(stream); return cudaSuccess; }
API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) { return cudaSuccess; }
API cudaError_t cudaEventCreate(cudaEvent_t *to) { *to = malloc(8); return cudaSuccess; }
API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *to, unsigned flags) { *to = malloc(8); return cudaSuccess; }
API cudaError_t cudaEventDestroy(cudaEvent_t event) { free(event); return cudaSuccess; }
API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) { return cudaSuccess; }
API cudaError_t cudaEventElapsedTime(float *to, cudaEvent_t from, cudaEvent_t until) { *to = 0.01f; return cudaSuccess; }

/* CUDA graphs: what is captured is counted when it is captured, and not again when it is replayed. */
static __thread int capturing;
API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) { capturing = 1; return cudaSuccess; }
API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *to) { capturing = 0; *to = malloc(8); return cudaSuccess; }
API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *to) {
  *to = capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *to, cudaGraph_t graph, unsigned long long flags) { *to = malloc(8); return cudaSuccess; }
API cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) { count(LAUNCHES, 1); return cudaSuccess; }
API cudaError_t cudaGraphDestroy(cudaGraph_t graph) { free(graph); return cudaSuccess; }
API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { free(graph); return cudaSuccess; }
