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
  COUNTERS
};

/* Adds to a counter, from any thread. */
void count(enum counter counter, uint64_t amount);

/* The address at which the host may touch what is at `address`: of device memory its readable twin, else `address` itself. */
void *readable(const void *address);

/* Does the work of a kernel whose results decide the sizes of other tensors; does nothing for other kernels (kernels.c). */
typedef void emulation(void **arguments, const char *name);
emulation *emulation_of(const char *name);

#endif
