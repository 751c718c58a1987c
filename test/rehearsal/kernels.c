/*
 * Launches. Kernels are counted by name and do nothing, but for the few whose results are sizes of other tensors: they do on
 * the host what they would do on a device, else a later Split, Slice or Loop would fail. With REHEARSAL_ARITHMETIC every kernel
 * does (arithmetic.c), and one that the emulation lacks ends the process with its name. Streams, events and graphs are names
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
  struct signature signature; /* of one that was launched */
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
  *it = (struct kernel){.host = host, .name = name};
  pthread_mutex_unlock(&lock);
}

static emulation *always_emulated(const struct signature *kernel);

static cudaError_t launch(const void *host, dim3 grid, dim3 block, void **arguments) {
  count(LAUNCHES, 1);
  pthread_mutex_lock(&lock);
  struct kernel *it = kernel_room ? slot(kernels, kernel_room, host) : 0;
  if (!it || !it->host) end_process("a kernel was launched that was not registered");
  it->launches++;
  if (!it->signature.name) {
    it->signature = signature_of(it->name);
    it->emulate = computes ? arithmetic_of(&it->signature) : always_emulated(&it->signature);
  }
  struct kernel known = *it;
  pthread_mutex_unlock(&lock);
  if (known.emulate)
    known.emulate(&(struct launch){known.signature, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, arguments});
  else if (computes) lacks(known.name);
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

/*
 * A token and its log-prob are read by the learner, which refuses a token that is not in the vocabulary and a log-prob that is not a
 * number: where nothing is computed, positions of largest entries are 0, and so are logarithms, not what lay there before.
 */
static void zero_positions(const struct launch *launch) {
  int together = strstr(launch->kernel.name, "cooperative") != 0; /* (rows, columns, from, to, ...) or (from, to, rows, columns) */
  int rows = ARGUMENT(int, together ? 0 : 2);
  memset(POINTER(together ? 3 : 1), 0, sizeof(int64_t) * rows);
}
static void zero_logarithms(const struct launch *launch) { memset(POINTER(1), 0, sizeof(float) * ARGUMENT(int64_t, 3)); }

static int is(const char *text, const char *wanted) { return text && !strcmp(text, wanted); }

/* What is emulated even where nothing else is: int64 numbers are sizes of other tensors, and a Split, Slice or Loop needs them. */
static emulation *always_emulated(const struct signature *kernel) {
  if (is(kernel->name, "_BinaryElementWiseSimple") && is(kernel->template[2], "long")) return arithmetic_of(kernel);
  if (is(kernel->name, "_ConcatKernelSameConcatDim") && is(kernel->template[0], "long")) return arithmetic_of(kernel);
  if (!strncmp(kernel->name, "arg_min_max_last_axis", 21)) return zero_positions;
  if (is(kernel->name, "_UnaryElementWise") && is(kernel->template[2], "OP_Log<float>")) return zero_logarithms;
  return 0;
}

API cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) { return launch(host, grid, block, arguments); }
API cudaError_t cudaLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) { return launch(host, grid, block, arguments); }
API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *how, const void *host, void **arguments) { return launch(host, how->gridDim, how->blockDim, arguments); }
API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) { return launch(kernel, grid, block, arguments); }
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

API cudaError_t cudaDeviceSynchronize(void) { count(SYNCHRONISATIONS, 1); return failure(); }
API cudaError_t cudaStreamSynchronize(cudaStream_t stream) { count(SYNCHRONISATIONS, 1); return failure(); }
API cudaError_t cudaEventSynchronize(cudaEvent_t event) { count(SYNCHRONISATIONS, 1); return failure(); }
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
API cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  if (computes) lacks("a CUDA graph");
  count(LAUNCHES, 1);
  return cudaSuccess;
}
API cudaError_t cudaGraphDestroy(cudaGraph_t graph) { free(graph); return cudaSuccess; }
API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { free(graph); return cudaSuccess; }
