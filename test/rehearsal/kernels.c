/*
 * Launches. Kernels are counted by name and do nothing, except for those whose results are sizes of other tensors: these compute on the
 * host, because a later Split, Slice or Loop would fail otherwise. With REHEARSAL_ARITHMETIC every kernel computes (arithmetic.c), and a
 * kernel that the emulation lacks ends the process with its name.
 */
#define _GNU_SOURCE
#include "rehearsal.h"
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct kernel {
  const void *host; /* the address by which a launch names it */
  const char *name; /* mangled */
  uint64_t launches;
  struct signature signature; /* of a kernel that was launched */
  emulation *emulate;
  int parameters;
  uint8_t pointers[MOST_PARAMETERS];
  struct own *own; /* of the learner's own kernels */
};

/* A hash table by address, with open addressing; it doubles when it is half full. */
static struct kernel *kernels;
static size_t kernel_count, kernel_room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct kernel *slot(struct kernel *table, size_t room, const void *host) {
  size_t i = ((uintptr_t)host >> 4) * 0x9E3779B97F4A7C15u & (room - 1);
  while (table[i].host && table[i].host != host) i = (i + 1) & (room - 1);
  return &table[i];
}

static void keep(struct kernel kernel) {
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
  struct kernel *it = slot(kernels, kernel_room, kernel.host);
  if (!it->host) kernel_count++;
  *it = kernel;
  pthread_mutex_unlock(&lock);
}
API void __cudaRegisterFunction(void **handle, const char *host, char *device_name, const char *name, int threads, void *a, void *b, void *c, void *d, int *e) { keep((struct kernel){.host = host, .name = name}); }
void register_own(struct own *own, const char *name) { keep((struct kernel){.host = own, .name = name, .own = own, .signature = {.name = name}}); }

void count_launch(const void *host) {
  pthread_mutex_lock(&lock);
  slot(kernels, kernel_room, host)->launches++;
  pthread_mutex_unlock(&lock);
}

static emulation *always_emulated(const struct signature *kernel);

/* A launch with copies of its arguments, whose sizes only the kernel knows: each copy is as long as the longest that an emulation reads. */
#define ARGUMENT_BYTES 512
struct launched {
  const void *host;
  struct kernel kernel;
  struct launch launch;
  void *arguments[MOST_PARAMETERS];
  char copies[][ARGUMENT_BYTES];
};

static void run(void *data, int replayed) {
  struct launched *it = data;
  count_launch(it->host);
  if (replayed)
    for (int i = 0; i < it->kernel.parameters; i++)
      if (it->kernel.pointers[i]) check_alive(*(void **)it->arguments[i], "a kernel of a graph");
  if (it->kernel.emulate) it->kernel.emulate(&it->launch);
  else if (computes) lacks(it->kernel.name);
}

static cudaError_t launch(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) {
  pthread_mutex_lock(&lock);
  struct kernel *it = kernel_room ? slot(kernels, kernel_room, host) : 0;
  if (!it || !it->host) end_process("a kernel was launched that was not registered");
  if (!it->signature.name) {
    it->signature = signature_of(it->name);
    it->emulate = computes ? arithmetic_of(&it->signature) : always_emulated(&it->signature);
    it->parameters = parameters_of(it->name, it->pointers);
  }
  struct kernel known = *it;
  pthread_mutex_unlock(&lock);
  if (known.own) return launch_own(known.own, (struct extent){grid.x, grid.y, grid.z}, (struct extent){block.x, block.y, block.z}, arguments, shared, stream);
  int copies = captures(stream) ? known.parameters : 0;
  struct launched *asked = malloc(sizeof *asked + copies * sizeof *asked->copies);
  *asked = (struct launched){host, known, {known.signature, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, arguments}, {0}};
  if (copies) asked->launch.arguments = asked->arguments;
  for (int i = 0; i < copies; i++) {
    asked->arguments[i] = asked->copies[i];
    struct iovec to = {asked->copies[i], ARGUMENT_BYTES}, from = {arguments[i], ARGUMENT_BYTES};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) <= 0) memcpy(asked->copies[i], arguments[i], sizeof(void *));
  }
  return perform(stream, LAUNCHES, run, asked);
}

/* For tests: writes a line "launches name" for each kernel that has run since the last call, also in graphs, as many as fit. */
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
 * The learner reads tokens and their log-probs, and refuses tokens outside of the vocabulary and log-probs that are not numbers. So without
 * arithmetic, positions of largest entries and logarithms are set to 0, instead of old data.
 */
static void zero_positions(const struct launch *launch) {
  int together = strstr(launch->kernel.name, "cooperative") != 0; /* (rows, columns, from, to, ...) or (from, to, rows, columns) */
  int rows = ARGUMENT(int, together ? 0 : 2);
  memset(POINTER(together ? 3 : 1), 0, sizeof(int64_t) * rows);
}
/* Sets joined data to 0, such as tokens with their probabilities. */
static void zero_joined(const struct launch *launch) { memset(POINTER(3), 0, bytes_of(type_of(launch->kernel.template[0])) * ARGUMENT(int, 5)); }
static void zero_logarithms(const struct launch *launch) { memset(POINTER(1), 0, sizeof(float) * ARGUMENT(int64_t, 3)); }

static int is(const char *text, const char *wanted) { return text && !strcmp(text, wanted); }

/* Returns kernels that are always emulated: int64 numbers are sizes of other tensors, which a Split, Slice or Loop needs. */
static emulation *always_emulated(const struct signature *kernel) {
  if (is(kernel->name, "_BinaryElementWiseSimple") && is(kernel->template[2], "long")) return arithmetic_of(kernel);
  if (is(kernel->name, "_ConcatKernelSameConcatDim") && is(kernel->template[0], "long")) return arithmetic_of(kernel);
  if (is(kernel->name, "_ConcatKernelSameConcatDim") && type_of(kernel->template[0]) != UNKNOWN) return zero_joined;
  if (!strncmp(kernel->name, "arg_min_max_last_axis", 21)) return zero_positions;
  if (is(kernel->name, "_UnaryElementWise") && is(kernel->template[2], "OP_Log<float>")) return zero_logarithms;
  return 0;
}

API cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) { return launch(host, grid, block, arguments, shared, stream); }
API cudaError_t cudaLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) { return launch(host, grid, block, arguments, shared, stream); }
API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *how, const void *host, void **arguments) { return launch(host, how->gridDim, how->blockDim, arguments, how->dynamicSmemBytes, how->stream); }
API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) { return launch(kernel, grid, block, arguments, shared, stream); }
API cudaError_t __cudaGetKernel(cudaKernel_t *to, const void *host) { *to = (cudaKernel_t)host; return cudaSuccess; }

struct call { cudaHostFn_t function; void *data; };
static void call(void *data, int replayed) { ((struct call *)data)->function(((struct call *)data)->data); }
API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
  struct call *asked = malloc(sizeof *asked);
  *asked = (struct call){function, data};
  return perform(stream, COUNTERS, call, asked);
}

/* The compiled form of <<<...>>> around a launch. */
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
API cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attribute, int value, int device) {
  pthread_mutex_lock(&lock);
  struct kernel *it = kernel_room ? slot(kernels, kernel_room, kernel) : 0;
  struct own *own = it && it->host ? it->own : 0;
  pthread_mutex_unlock(&lock);
  int most = 0;
  cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  return own && attribute == cudaFuncAttributeMaxDynamicSharedMemorySize ? own_shared(own, value, most) : cudaSuccess;
}
API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *to, const void *host, int threads, size_t shared, unsigned flags) { *to = 2; return cudaSuccess; }
API cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **to, unsigned version, unsigned long long flags, enum cudaDriverEntryPointQueryResult *found) {
  *to = 0;
  if (found) *found = cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
API int cuTensorMapEncodeTiled(void) { return 0; }
