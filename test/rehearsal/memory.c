/*
 * Devices and their memory. The memory of a device is one file in memory that is mapped twice: without any permission at the
 * addresses that ONNX Runtime is given, and readable at others, where copies are made. A host access to device memory is
 * therefore a segmentation fault, as it is on a machine with a GPU, and ends the process with a message.
 *
 * Addresses are never given twice, so that a copy to or from memory that was freed is found.
 *
 * Environment, read when the library is loaded:
 *   REHEARSAL_DEVICES     number of devices (1)
 *   REHEARSAL_BYTES       memory of each device in bytes, one number or one for each device, separated by commas (80e9)
 *   REHEARSAL_FAILED      number of a device on which every call fails with error 719, as after an Xid (none)
 *   REHEARSAL_COPY_BYTES  copies of more bytes than this are counted and not made (none). No kernel reads what they bring, and
 *                         a model of 6 GB then takes no memory of this machine
 *   REHEARSAL_ARITHMETIC  1: kernels and matrix products compute on the host, so that results are those of a GPU; all copies are
 *                         made, and memory holds no number before it is written. A kernel that is not emulated ends the process
 *   REHEARSAL_CAPABILITY  compute capability of each device (9.0)
 *   REHEARSAL_VERBOSE     whether each allocation, and each copy between host and device, is written to stderr with its bytes
 *   REHEARSAL_REPORT      file to which the counters are added when the process ends, one line of JSON
 */
#define _GNU_SOURCE
#include "rehearsal.h"
#include <cuda_runtime_api.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#undef cudaGetDeviceProperties

#define MOST_DEVICES 8
/* Addresses of all devices. When a device's addresses are used up, the process ends. */
#define ADDRESSES ((size_t)8 << 40)
#define MOST_ADDRESSES ((size_t)4 << 40)
/* cudaMalloc rounds sizes up to it. */
#define GRAIN 512
#define PAGE 4096
/* A NaN consists of this byte alone, in float32, float64 and bfloat16. */
#define NOT_A_NUMBER 0xFF

struct block {
  size_t start, size;
  int freed;
};

struct device {
  char *addresses, *twin;
  int file;
  size_t size, used, peak, next;
  uint64_t to_device_bytes, to_host_bytes;
  cudaError_t failure; /* the error of every call on the device, if it has failed */
  struct block *blocks; /* by address */
  size_t count, capacity;
};

static struct device devices[MOST_DEVICES];
static int device_count = 1;
static size_t span = MOST_ADDRESSES; /* of each device */
static size_t largest_copy = SIZE_MAX;
static int verbose;
static int major = 9, minor;
int computes;
static uint64_t counters[COUNTERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int current;
static __thread cudaError_t last_error;
static struct sigaction previous;

int result(int error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

void end_process(const char *message) {
  fprintf(stderr, "rehearsal: %s\n", message);
  void *frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
  _exit(70);
}

void count(enum counter counter, uint64_t amount) { __atomic_fetch_add(&counters[counter], amount, __ATOMIC_RELAXED); }

static struct device *device_of(const void *address) {
  for (struct device *it = devices; it < devices + device_count; it++)
    if ((char *)address >= it->addresses && (char *)address < it->addresses + span) return it;
  return 0;
}

void *readable(const void *address) {
  struct device *device = device_of(address);
  return device ? device->twin + ((char *)address - device->addresses) : (void *)address;
}

/* Returns the block with the byte at `offset`, or 0. Call it with the lock. */
static struct block *block_at(struct device *device, size_t offset) {
  size_t low = 0, high = device->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (device->blocks[middle].start <= offset) low = middle + 1;
    else high = middle;
  }
  struct block *found = low > 0 ? &device->blocks[low - 1] : 0;
  return found && offset < found->start + found->size ? found : 0;
}

/* Ends the process unless all bytes are in one block that was not freed. Ignores host memory. */
static void check_range(const void *address, size_t bytes, const char *operation) {
  struct device *device = device_of(address);
  if (!device || bytes == 0) return;
  size_t offset = (char *)address - device->addresses;
  pthread_mutex_lock(&lock);
  struct block *block = block_at(device, offset);
  char message[256] = "";
  if (!block || block->freed || offset + bytes > block->start + block->size)
    snprintf(message, sizeof message, "%s of %zu bytes at %p of device %d, %s", operation, bytes, address,
             (int)(device - devices), !block ? "where nothing was allocated" : block->freed ? "which were freed" : "beyond the end of what was allocated");
  pthread_mutex_unlock(&lock);
  if (message[0]) end_process(message);
}

void check_alive(const void *address, const char *operation) {
  if (address) check_range(address, 1, operation);
}

static void on_fault(int signal, siginfo_t *info, void *context) {
  struct device *device = device_of(info->si_addr);
  if (device) {
    char message[128];
    snprintf(message, sizeof message, "the host read or wrote memory of device %d at %p", (int)(device - devices), info->si_addr);
    end_process(message);
  }
  if (previous.sa_flags & SA_SIGINFO) return previous.sa_sigaction(signal, info, context);
  sigaction(SIGSEGV, &previous, 0); /* the instruction faults again, now for the previous handler */
}

static void report(void) {
  const char *path = getenv("REHEARSAL_REPORT");
  FILE *file = path ? fopen(path, "a") : 0;
  if (!file) return;
  fprintf(file, "{\"pid\":%d,\"counts\":[", getpid());
  for (int i = 0; i < COUNTERS; i++) fprintf(file, "%s%llu", i ? "," : "", (unsigned long long)counters[i]);
  fprintf(file, "],\"peakBytes\":[");
  for (int i = 0; i < device_count; i++) fprintf(file, "%s%zu", i ? "," : "", devices[i].peak);
  fprintf(file, "]}\n");
  fclose(file);
}

__attribute__((constructor)) static void start(void) {
  const char *number = getenv("REHEARSAL_DEVICES"), *bytes = getenv("REHEARSAL_BYTES"), *copy = getenv("REHEARSAL_COPY_BYTES");
  device_count = number ? atoi(number) : 1;
  if (device_count < 0 || device_count > MOST_DEVICES) end_process("REHEARSAL_DEVICES must be 0 to 8");
  if (device_count > 2) span = ADDRESSES / device_count;
  verbose = getenv("REHEARSAL_VERBOSE") != 0;
  const char *capability = getenv("REHEARSAL_CAPABILITY");
  if (capability && sscanf(capability, "%d.%d", &major, &minor) != 2) end_process("REHEARSAL_CAPABILITY must be two numbers, such as 7.5");
  if (copy) largest_copy = (size_t)strtod(copy, 0);
  const char *arithmetic = getenv("REHEARSAL_ARITHMETIC");
  computes = arithmetic && !strcmp(arithmetic, "1");
  if (computes) largest_copy = SIZE_MAX;
  double size = 80e9;
  for (int i = 0; i < device_count; i++) {
    if (bytes && *bytes) {
      char *end;
      size = strtod(bytes, &end);
      bytes = *end == ',' ? end + 1 : 0;
    }
    struct device *it = &devices[i];
    it->size = (size_t)size;
    it->file = memfd_create("rehearsal", MFD_CLOEXEC);
    if (it->file < 0 || ftruncate(it->file, span)) end_process("a file in memory cannot be made");
    it->addresses = mmap(0, span, PROT_NONE, MAP_SHARED | MAP_NORESERVE, it->file, 0);
    it->twin = mmap(0, span, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, it->file, 0);
    if (it->addresses == MAP_FAILED || it->twin == MAP_FAILED) end_process("there are no addresses for a device");
  }
  const char *failed = getenv("REHEARSAL_FAILED");
  if (failed && atoi(failed) < device_count) devices[atoi(failed)].failure = cudaErrorLaunchFailure;
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigaction(SIGSEGV, &action, &previous);
  atexit(report);
}

/* For tests: returns the counters so far, then for each device the bytes in use and their peak since the last call. */
API int rehearsal_counts(uint64_t *to, int room) {
  pthread_mutex_lock(&lock);
  int written = 0;
  for (; written < COUNTERS && written < room; written++) to[written] = __atomic_load_n(&counters[written], __ATOMIC_RELAXED);
  for (int i = 0; i < device_count && written + 2 <= room; i++) {
    to[written++] = devices[i].used;
    to[written++] = devices[i].peak;
    devices[i].peak = devices[i].used;
  }
  pthread_mutex_unlock(&lock);
  return written;
}

/* For tests: sets a device's memory from now on, which may be less than is in use. */
API void rehearsal_resize(int device, double bytes) {
  pthread_mutex_lock(&lock);
  if (device >= 0 && device < device_count) devices[device].size = (size_t)bytes;
  pthread_mutex_unlock(&lock);
}

/* For tests: returns the bytes that were copied to a device from the host, and back, since the last call. */
API void rehearsal_copies(int device, uint64_t to[2]) {
  struct device *it = &devices[device];
  to[0] = __atomic_exchange_n(&it->to_device_bytes, 0, __ATOMIC_RELAXED);
  to[1] = __atomic_exchange_n(&it->to_host_bytes, 0, __ATOMIC_RELAXED);
}

/* For tests: makes a device fail with this CUDA error, as after an Xid, or work again (0). */
API void rehearsal_fail(int device, int error) {
  if (device >= 0 && device < device_count) devices[device].failure = error;
}

int failure(void) { return device_count ? result(devices[current].failure) : cudaSuccess; }

static cudaError_t allocate(void **to, size_t bytes) {
  *to = 0;
  if (device_count == 0) return result(cudaErrorNoDevice);
  if (failure()) return failure();
  if (bytes == 0) return cudaSuccess;
  struct device *device = &devices[current];
  size_t size = (bytes + GRAIN - 1) / GRAIN * GRAIN;
  pthread_mutex_lock(&lock);
  int full = size > device->size || device->used > device->size - size;
  if (!full) {
    if (device->next + size > span) end_process("all addresses of a device have been given");
    if (device->count == device->capacity) {
      device->capacity = device->capacity ? 2 * device->capacity : 4096;
      device->blocks = realloc(device->blocks, device->capacity * sizeof *device->blocks);
    }
    device->blocks[device->count++] = (struct block){device->next, size, 0};
    *to = device->addresses + device->next;
    device->next = (device->next + size + PAGE - 1) / PAGE * PAGE; /* a separate page, which can be given back */
    device->used += size;
    if (computes) memset(readable(*to), NOT_A_NUMBER, bytes);
    if (device->used > device->peak) device->peak = device->used;
  }
  pthread_mutex_unlock(&lock);
  if (full) return result(cudaErrorMemoryAllocation);
  count(ALLOCATIONS, 1);
  if (verbose) fprintf(stderr, "rehearsal: %zu bytes allocated\n", bytes);
  return cudaSuccess;
}

static cudaError_t release(void *address) {
  if (!address) return cudaSuccess;
  struct device *device = device_of(address);
  if (!device) return result(cudaErrorInvalidValue);
  size_t offset = (char *)address - device->addresses;
  pthread_mutex_lock(&lock);
  struct block *block = block_at(device, offset);
  int wrong = !block || block->freed || block->start != offset;
  if (!wrong) {
    block->freed = 1;
    device->used -= block->size;
    fallocate(device->file, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, block->start, (block->size + PAGE - 1) / PAGE * PAGE);
  }
  pthread_mutex_unlock(&lock);
  if (wrong) end_process("memory was freed that is not allocated");
  return cudaSuccess;
}

/* Host memory that a device can access: a list, because there is little of it. */
struct pinned {
  char *address;
  size_t size;
  struct pinned *next;
};
static struct pinned *pinned;

static int is_pinned(const void *address, size_t bytes) {
  int found = 0;
  pthread_mutex_lock(&lock);
  for (struct pinned *it = pinned; it; it = it->next)
    if ((char *)address >= it->address && (char *)address + bytes <= it->address + it->size) found = 1;
  pthread_mutex_unlock(&lock);
  return found;
}

struct copy {
  void *to;
  const void *from;
  size_t to_pitch, from_pitch, width, height;
};
static void copy(void *data, int replayed) {
  struct copy *it = data;
  size_t bytes = it->width * it->height;
  if (bytes == 0) return;
  int there = device_of(it->to) != 0, from_there = device_of(it->from) != 0;
  check_range(it->to, (it->height - 1) * it->to_pitch + it->width, "a copy to device memory");
  check_range(it->from, (it->height - 1) * it->from_pitch + it->width, "a copy from device memory");
  enum counter kind = replayed ? GRAPH_COPIES : there && !from_there ? TO_DEVICE : from_there && !there ? TO_HOST : ON_DEVICE;
  count(kind, 1);
  count(kind + 1, bytes); /* the next counter has its bytes */
  if (there && !from_there) __atomic_fetch_add(&device_of(it->to)->to_device_bytes, bytes, __ATOMIC_RELAXED);
  if (from_there && !there) __atomic_fetch_add(&device_of(it->from)->to_host_bytes, bytes, __ATOMIC_RELAXED);
  if (verbose && there != from_there) fprintf(stderr, "rehearsal: %zu bytes %s\n", bytes, there ? "to the device" : "to the host");
  if (bytes > largest_copy) return;
  for (size_t i = 0; i < it->height; i++)
    memmove((char *)readable(it->to) + i * it->to_pitch, (char *)readable(it->from) + i * it->from_pitch, it->width);
}
static cudaError_t copy_soon(struct copy asked, cudaStream_t stream) {
  size_t to = asked.height ? (asked.height - 1) * asked.to_pitch + asked.width : 0, from = asked.height ? (asked.height - 1) * asked.from_pitch + asked.width : 0;
  if (captures(stream) && ((!device_of(asked.to) && !is_pinned(asked.to, to)) || (!device_of(asked.from) && !is_pinned(asked.from, from))))
    return cannot_capture(stream, "a copy to or from memory of the host that is not pinned");
  struct copy *data = malloc(sizeof *data);
  *data = asked;
  return perform(stream, COUNTERS, copy, data);
}

struct fill {
  void *to;
  int value;
  size_t bytes;
};
static void fill(void *data, int replayed) {
  struct fill *it = data;
  check_range(it->to, it->bytes, "a memset");
  if (it->bytes <= largest_copy) memset(readable(it->to), it->value, it->bytes);
}
static cudaError_t fill_soon(void *to, int value, size_t bytes, cudaStream_t stream) {
  struct fill *data = malloc(sizeof *data);
  *data = (struct fill){to, value, bytes};
  return perform(stream, COUNTERS, fill, data);
}

/* A call that waits for the device: not allowed during a capture, otherwise `act`. */
#define WAITS(what, act) { cudaError_t error = prohibited(what); return error ? error : act; }

API cudaError_t cudaMalloc(void **to, size_t bytes) WAITS("cudaMalloc", allocate(to, bytes))
API cudaError_t cudaMallocFromPoolAsync(void **to, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  return captures(stream) ? cannot_capture(stream, "an allocation, which is not emulated") : allocate(to, bytes);
}
API cudaError_t cudaFree(void *address) WAITS("cudaFree", release(address))
API cudaError_t cudaFreeAsync(void *address, cudaStream_t stream) {
  return captures(stream) ? cannot_capture(stream, "a release, which is not emulated") : release(address);
}

static cudaError_t pin(void **to, size_t bytes) {
  struct pinned *it = malloc(sizeof *it);
  *it = (struct pinned){malloc(bytes ? bytes : 1), bytes, 0};
  *to = it->address;
  pthread_mutex_lock(&lock);
  it->next = pinned;
  pinned = it;
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}
static cudaError_t unpin(void *address) {
  if (!address) return cudaSuccess;
  pthread_mutex_lock(&lock);
  struct pinned **at = &pinned;
  while (*at && (*at)->address != address) at = &(*at)->next;
  struct pinned *it = *at;
  if (it) *at = it->next;
  pthread_mutex_unlock(&lock);
  if (!it) return result(cudaErrorInvalidValue);
  free(it->address);
  free(it);
  return cudaSuccess;
}
API cudaError_t cudaMallocHost(void **to, size_t bytes) WAITS("cudaMallocHost", pin(to, bytes))
API cudaError_t cudaHostAlloc(void **to, size_t bytes, unsigned flags) WAITS("cudaHostAlloc", pin(to, bytes))
API cudaError_t cudaFreeHost(void *address) WAITS("cudaFreeHost", unpin(address))

API cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) WAITS("cudaMemcpy", copy_soon((struct copy){to, from, bytes, bytes, bytes, 1}, 0))
API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_soon((struct copy){to, from, bytes, bytes, bytes, 1}, stream);
}
API cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_soon((struct copy){to, from, to_pitch, from_pitch, width, height}, stream);
}
API cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind) WAITS("cudaMemcpyFromSymbol", fill_soon(to, 0, bytes, 0))
API cudaError_t cudaMemset(void *to, int value, size_t bytes) WAITS("cudaMemset", fill_soon(to, value, bytes, 0))
API cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) { return fill_soon(to, value, bytes, stream); }

API cudaError_t cudaMemGetInfo(size_t *unused, size_t *total) {
  pthread_mutex_lock(&lock);
  *total = devices[current].size;
  *unused = *total > devices[current].used ? *total - devices[current].used : 0;
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}
API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *to, const void *address) {
  struct device *device = device_of(address);
  memset(to, 0, sizeof *to);
  to->type = device ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  to->device = device ? device - devices : 0;
  to->devicePointer = (void *)address;
  return cudaSuccess;
}
API cudaError_t cudaMemPoolCreate(cudaMemPool_t *to, const struct cudaMemPoolProps *properties) { *to = malloc(8); return cudaSuccess; }
API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { free(pool); return cudaSuccess; }
API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value) { return cudaSuccess; }
API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value) { return cudaSuccess; }
API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) { return cudaSuccess; }

API cudaError_t cudaGetDeviceCount(int *to) { *to = device_count; return result(device_count ? cudaSuccess : cudaErrorNoDevice); }
API cudaError_t cudaGetDevice(int *to) { *to = current; return result(device_count ? cudaSuccess : cudaErrorNoDevice); }
API cudaError_t cudaSetDevice(int device) {
  if (device_count == 0) return result(cudaErrorNoDevice);
  if (device < 0 || device >= device_count) return result(cudaErrorInvalidDevice);
  current = device;
  return cudaSuccess;
}

/* The properties of an H100, because ONNX Runtime chooses kernels by them. */
API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *to, int device) {
  if (device < 0 || device >= device_count) return result(cudaErrorInvalidDevice);
  *to = (struct cudaDeviceProp){
      .name = "Rehearsal", .totalGlobalMem = devices[device].size, .sharedMemPerBlock = 49152, .regsPerBlock = 65536,
      .warpSize = 32, .memPitch = 2147483647, .maxThreadsPerBlock = 1024, .maxThreadsDim = {1024, 1024, 64},
      .maxGridSize = {2147483647, 65535, 65535}, .totalConstMem = 65536, .major = major, .minor = minor, .textureAlignment = 512,
      .multiProcessorCount = 132, .maxThreadsPerMultiProcessor = 2048, .sharedMemPerMultiprocessor = 233472,
      .sharedMemPerBlockOptin = 232448, .l2CacheSize = 62914560, .maxBlocksPerMultiProcessor = 32,
      .regsPerMultiprocessor = 65536, .concurrentKernels = 1, .unifiedAddressing = 1, .memoryBusWidth = 5120};
  return cudaSuccess;
}
/* Shared memory of a block by compute capability, bytes (CUDA's programming guide, table of technical specifications). */
static int most_shared(void) {
  if (major == 7) return 65536;
  if (major == 8) return minor == 0 || minor == 7 ? 166912 : 101376;
  return major == 12 ? 101376 : 232448;
}
API cudaError_t cudaDeviceGetAttribute(int *to, enum cudaDeviceAttr attribute, int device) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *to = major; break;
    case cudaDevAttrComputeCapabilityMinor: *to = minor; break;
    case cudaDevAttrMultiProcessorCount: *to = 132; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *to = most_shared(); break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *to = 233472; break;
    case cudaDevAttrMaxThreadsPerBlock: *to = 1024; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *to = 2048; break;
    case cudaDevAttrWarpSize: *to = 32; break;
    default: *to = 0;
  }
  return cudaSuccess;
}
API cudaError_t cudaDriverGetVersion(int *to) { *to = 13000; return cudaSuccess; }
API cudaError_t cudaRuntimeGetVersion(int *to) { *to = 13000; return cudaSuccess; }
API cudaError_t cudaGetLastError(void) { cudaError_t error = last_error; last_error = cudaSuccess; return error; }
API cudaError_t cudaPeekAtLastError(void) { return last_error; }
/* CUDA's own texts, because the learner searches messages for them. */
static const struct { cudaError_t error; const char *name, *text; } ERRORS[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation", "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit", "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent", "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread", "attempt to terminate a thread-local capture sequence from another thread"}};
API const char *cudaGetErrorName(cudaError_t error) {
  for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
    if (ERRORS[i].error == error) return ERRORS[i].name;
  return "cudaErrorUnknown";
}
API const char *cudaGetErrorString(cudaError_t error) {
  for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
    if (ERRORS[i].error == error) return ERRORS[i].text;
  return "unknown error";
}
