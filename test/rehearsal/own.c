/*
 * The learner's own kernels: libraries of PTX text. A kernel's parameters are read from the text; with REHEARSAL_ARITHMETIC a launch
 * executes it (ptx.c), block after block.
 */
#include "ptx.h"
#include "rehearsal.h"
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Shared memory that a launch may have without the attribute by which a kernel asks for more, bytes. */
#define SHARED_WITHOUT_ASKING 49152

struct own {
  struct ptx *ptx;
  char name[64];
  size_t shared; /* most that the kernel has asked for */
};

/* A library that is not text is one of CUDA's own. */
static const char *text_of(const void *code) { return strncmp(code, "//", 2) && strncmp(code, ".version", 8) ? 0 : code; }

API cudaError_t cudaLibraryLoadData(cudaLibrary_t *to, const void *code, enum cudaJitOption *a, void **b, unsigned c, enum cudaLibraryOption *d, void **e, unsigned f) {
  if (prohibited("cudaLibraryLoadData")) return cudaErrorStreamCaptureUnsupported;
  const char *text = text_of(code);
  if (text && (!strstr(text, ".target") || !strstr(text, ".entry"))) return cudaErrorInvalidPtx;
  *to = (cudaLibrary_t)strdup(text ? text : "");
  return cudaSuccess;
}
API cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  free(library);
  return cudaSuccess;
}
API cudaError_t cudaLibraryGetKernel(cudaKernel_t *to, cudaLibrary_t library, const char *name) {
  const char *text = (const char *)library;
  if (!*text) {
    *to = (cudaKernel_t)name;
    return cudaSuccess;
  }
  struct ptx *ptx = ptx_parse(text, name, computes);
  if (!ptx) return cudaErrorSymbolNotFound;
  struct own *it = calloc(1, sizeof *it);
  it->ptx = ptx;
  it->shared = SHARED_WITHOUT_ASKING;
  snprintf(it->name, sizeof it->name, "%s", name);
  register_own(it, it->name);
  *to = (cudaKernel_t)it;
  return cudaSuccess;
}

int own_shared(struct own *it, int bytes, int most) {
  if (bytes > most) return cudaErrorInvalidValue;
  it->shared = bytes;
  return cudaSuccess;
}

struct own_launch {
  struct own *own;
  struct extent grid;
  size_t shared;
  uint64_t arguments[MOST_PARAMETERS];
};

static void run(void *data, int replayed) {
  struct own_launch *it = data;
  const struct ptx *ptx = it->own->ptx;
  count_launch(it->own);
  for (int i = 0; i < ptx->parameters; i++)
    if (ptx->bytes[i] == 8 && it->arguments[i] >> 32) check_alive((void *)it->arguments[i], it->own->name);
  if (!computes) return;
  for (unsigned z = 0; z < it->grid.z; z++)
    for (unsigned y = 0; y < it->grid.y; y++)
      for (unsigned x = 0; x < it->grid.x; x++) ptx_block(ptx, (unsigned[]){x, y, z}, it->arguments, it->shared);
}

int launch_own(struct own *own, struct extent grid, struct extent block, void **arguments, size_t shared, void *stream) {
  if (failure()) return failure();
  unsigned threads = block.x * block.y * block.z;
  if (!grid.x || !grid.y || !grid.z || grid.y > 65535 || grid.z > 65535 || (int)threads != own->ptx->threads || shared > own->shared) return result(cudaErrorInvalidValue);
  struct own_launch *it = calloc(1, sizeof *it);
  it->own = own;
  it->grid = grid;
  it->shared = shared;
  for (int i = 0; i < own->ptx->parameters; i++) memcpy(&it->arguments[i], arguments[i], own->ptx->bytes[i]);
  return perform(stream, LAUNCHES, run, it);
}
