/* What the files of the rehearsal share: the counters, and the address ranges of the devices. */
#ifndef REHEARSAL_H
#define REHEARSAL_H
#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

/* The order is the order of COUNTERS in counts.ts. */
enum counter {
  LAUNCHES,        /* kernels of ONNX Runtime's own */
  PRODUCTS,        /* matrix products of cuBLAS and cuBLASLt */
  CUDNN,           /* operations of cuDNN */
  TO_DEVICE,       /* copies from host to device, and their bytes */
  TO_DEVICE_BYTES,
  TO_HOST,         /* copies from device to host */
  TO_HOST_BYTES,
  ON_DEVICE,       /* copies within a device, or between two */
  ON_DEVICE_BYTES,
  SYNCHRONISATIONS,
  ALLOCATIONS,     /* of device memory */
  GRAPH_LAUNCHES,
  GRAPH_KERNELS,   /* kernels and products of the graphs that were launched */
  GRAPH_COPIES,    /* copies of these, and their bytes */
  GRAPH_COPY_BYTES,
  COUNTERS
};

/* Adds to a counter, from any thread. */
void count(enum counter counter, uint64_t amount);

/* The address at which the host may touch what is at `address`: of device memory its readable twin, else `address` itself. */
void *readable(const void *address);

/* Writes a message and where it came from to stderr, and ends the process. */
void end_process(const char *message) __attribute__((noreturn));

/* What every call on this thread's device returns: 0, unless a test let it fail. */
int failure(void);

/* Ends the process: the arithmetic of a kernel or a function is not emulated. */
void lacks(const char *what) __attribute__((noreturn));

/* Keeps an error for cudaGetLastError. Errors are of cudaError_t. */
int result(int error);

/* What a call asks a device to do. It is done at once, or again with each launch of a graph, where `replayed` is not 0. */
typedef void action(void *data, int replayed);

/*
 * Does it or, where the stream captures, records it. `data` is from malloc and belongs to this function from now on. `counter` is counted
 * when it is done at once; COUNTERS: none. @returns an error of CUDA, 0: none
 */
int perform(void *stream, enum counter counter, action *act, void *data);

/* Whether a stream captures, and what to answer where it cannot capture what it is asked for. */
int captures(void *stream);
int cannot_capture(void *stream, const char *what);

/* The error of a call that no stream's capture allows, 0 where none captures. */
int prohibited(const char *what);

/* Ends the process where there is no device memory at `address`, which is not null, but there was. */
void check_alive(const void *address, const char *operation);

/* Of cuBLAS and of cuDNN. */
struct handle { void *stream; };

/* Whether kernels and products compute: REHEARSAL_ARITHMETIC (memory.c). */
extern int computes;

/* A kernel's name in parts: `_UnaryElementWise<float, float, OP_Exp<float>, 256, 4>` has five template arguments. */
#define MOST_TEMPLATE_ARGUMENTS 16
struct signature {
  const char *name; /* without namespaces, types of parameters and template arguments */
  int count;
  const char *template[MOST_TEMPLATE_ARGUMENTS];
};
struct signature signature_of(const char *mangled);
/* The number of a kernel's parameters, and which of them are pointers. */
#define MOST_PARAMETERS 64
int parameters_of(const char *mangled, uint8_t pointers[MOST_PARAMETERS]);

struct extent { unsigned x, y, z; };
struct launch {
  struct signature kernel;
  struct extent grid, block;
  void **arguments; /* the address of each */
};

/* The learner's own kernels (own.c), by the address that is their handle; and the counter of a kernel's launches. */
struct own;
void register_own(struct own *own, const char *name);
int own_shared(struct own *own, int bytes, int most);
int launch_own(struct own *own, struct extent grid, struct extent block, void **arguments, size_t shared, void *stream);
void count_launch(const void *host);

/* Does on the host what a kernel does on a device. Null: the emulation lacks this kernel. */
typedef void emulation(const struct launch *launch);
emulation *arithmetic_of(const struct signature *kernel);
emulation *attention_of(const struct signature *kernel); /* its part for GroupQueryAttention (attention.c) */
emulation *movement_of(const struct signature *kernel); /* its part for kernels that move numbers and change none (movement.c) */

/* Types of numbers, by CUDA's and ONNX Runtime's names for them. */
enum type { UNKNOWN, FLOAT, DOUBLE, BFLOAT16, FLOAT16, BOOL, INT8, INT16, INT32, INT64, INT128 };
enum type type_of(const char *name);
size_t bytes_of(enum type type);
/* Whole numbers beyond 2^53 are not exact. */
double get(enum type type, const void *from, int64_t i);
void put(enum type type, void *to, int64_t i, double value);

/* Arguments of a launch, by their number. */
#define ARGUMENT(type, i) (*(type *)launch->arguments[i])
#define POINTER(i) readable(ARGUMENT(void *, i))
/* ONNX Runtime's DivMod<int>, and its TArray of these, of sizes and strides, and of pointers. */
struct divisor { uint32_t divisor, multiplier, shift; };
struct divisors { int32_t size; struct divisor of[8]; };
struct sizes { int32_t size; int64_t of[8]; };
struct pointers { int32_t size; void *of[32]; };

#endif
