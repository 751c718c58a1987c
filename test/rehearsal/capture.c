/*
 * Streams, events and CUDA graphs. Work on a capturing stream is recorded instead of done: kernels with copies of their arguments,
 * products, copies. A launch of the graph does it again, with the data that are then at the same addresses. Calls that CUDA forbids during
 * a capture fail like there, and the capture is lost: https://docs.nvidia.com/cuda/cuda-programming-guide, "Prohibited and Unhandled
 * Operations".
 *
 * Outside of a capture all work is done when a call returns, and streams and events are only names.
 */
#include "rehearsal.h"
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct node {
  enum counter counter;
  action *act;
  void *data;
  struct node *next;
};
struct graph {
  struct node *first, **end;
  int users; /* a graph and its executable */
};
struct stream {
  int blocks; /* the legacy default stream of its device waits for it */
  int device;
  struct graph *captured; /* null: it does not capture */
  cudaError_t lost;
  pthread_t thread;
  enum cudaStreamCaptureMode mode;
  struct stream *next;
};
struct event {
  struct stream *stream; /* the stream whose capture recorded it */
};

static struct stream *capturing_streams;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int verbose(void) {
  static int known = -1;
  if (known < 0) known = getenv("REHEARSAL_VERBOSE") != 0;
  return known;
}

static int device_now(void) {
  int device = 0;
  cudaGetDevice(&device);
  return device;
}

static cudaError_t lose(struct stream *stream, cudaError_t error, const char *what) {
  if (!stream->lost && verbose()) fprintf(stderr, "rehearsal: %s while a stream captures\n", what);
  stream->lost = cudaErrorStreamCaptureInvalidated;
  return result(error);
}

/* Whether captures of other threads forbid calls of this one: all global captures do, or none. */
static __thread enum cudaStreamCaptureMode interaction = cudaStreamCaptureModeGlobal;
API cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
  enum cudaStreamCaptureMode before = interaction;
  interaction = *mode;
  *mode = before;
  return cudaSuccess;
}

/* Returns the error of a call that is not allowed during a capture: a capture of this thread or, if both are global, of any thread. */
int prohibited(const char *what) {
  cudaError_t error = cudaSuccess;
  pthread_mutex_lock(&lock);
  for (struct stream *it = capturing_streams; it; it = it->next)
    if (interaction != cudaStreamCaptureModeRelaxed && it->mode != cudaStreamCaptureModeRelaxed &&
        (pthread_equal(it->thread, pthread_self()) || (it->mode == cudaStreamCaptureModeGlobal && interaction == cudaStreamCaptureModeGlobal)))
      error = lose(it, cudaErrorStreamCaptureUnsupported, what);
  pthread_mutex_unlock(&lock);
  return error;
}

static struct stream *stream_of(void *handle) {
  if (handle == cudaStreamPerThread) end_process("the default stream of a thread is not emulated");
  return handle == cudaStreamLegacy ? 0 : handle;
}

/* Returns the error of work on a stream: the capture was lost, or the legacy default stream would wait for a capturing stream. */
static cudaError_t refused(struct stream *stream, const char *what) {
  cudaError_t error = stream ? stream->lost : cudaSuccess;
  if (stream) return result(error);
  pthread_mutex_lock(&lock);
  for (struct stream *it = capturing_streams; it; it = it->next)
    if (it->blocks && it->device == device_now()) error = lose(it, cudaErrorStreamCaptureImplicit, what);
  pthread_mutex_unlock(&lock);
  return error;
}

int captures(void *handle) {
  struct stream *stream = stream_of(handle);
  return stream && stream->captured;
}

int cannot_capture(void *handle, const char *what) { return lose(stream_of(handle), cudaErrorStreamCaptureUnsupported, what); }

int perform(void *handle, enum counter counter, action *act, void *data) {
  struct stream *stream = stream_of(handle);
  cudaError_t error = refused(stream, "work for the default stream");
  if (error) {
    free(data);
    return error;
  }
  if (stream && stream->captured) {
    struct node *node = malloc(sizeof *node);
    *node = (struct node){counter, act, data, 0};
    *stream->captured->end = node;
    stream->captured->end = &node->next;
    return 0;
  }
  if (counter != COUNTERS) count(counter, 1);
  if (act) act(data, 0);
  free(data);
  return 0;
}

/* Number of graphs that can be launched. */
static int64_t launchable;
/* For tests. */
API int64_t rehearsal_graphs(void) { return __atomic_load_n(&launchable, __ATOMIC_RELAXED); }

static struct graph *used(struct graph *graph) {
  __atomic_add_fetch(&graph->users, 1, __ATOMIC_RELAXED);
  return graph;
}

static void give_up(struct graph *graph) {
  if (!graph || __atomic_sub_fetch(&graph->users, 1, __ATOMIC_RELAXED) > 0) return;
  for (struct node *it = graph->first, *next; it; it = next) {
    next = it->next;
    free(it->data);
    free(it);
  }
  free(graph);
}

/* Ends the capture. The graph is kept if it is wanted. */
static struct graph *end_capture(struct stream *stream) {
  struct graph *graph = stream->captured;
  pthread_mutex_lock(&lock);
  for (struct stream **it = &capturing_streams; *it; it = &(*it)->next)
    if (*it == stream) {
      *it = stream->next;
      break;
    }
  stream->captured = 0;
  stream->lost = cudaSuccess;
  pthread_mutex_unlock(&lock);
  return graph;
}

API cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode) {
  struct stream *stream = stream_of(handle);
  if (!stream) return result(cudaErrorStreamCaptureUnsupported);
  if (stream->captured) return result(cudaErrorIllegalState);
  struct graph *graph = calloc(1, sizeof *graph);
  graph->users = 1;
  graph->end = &graph->first;
  pthread_mutex_lock(&lock);
  stream->captured = graph;
  stream->mode = mode;
  stream->thread = pthread_self();
  stream->next = capturing_streams;
  capturing_streams = stream;
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}
API cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *to) {
  struct stream *stream = stream_of(handle);
  *to = 0;
  if (!stream || !stream->captured) return result(cudaErrorIllegalState);
  if (stream->mode != cudaStreamCaptureModeRelaxed && !pthread_equal(stream->thread, pthread_self())) return result(cudaErrorStreamCaptureWrongThread);
  cudaError_t lost = stream->lost;
  struct graph *graph = end_capture(stream);
  if (lost) give_up(graph);
  else *to = (cudaGraph_t)graph;
  return result(lost);
}
API cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *to) {
  struct stream *stream = stream_of(handle);
  if (!stream) {
    *to = cudaStreamCaptureStatusNone;
    return refused(0, "a question about the default stream");
  }
  *to = !stream->captured ? cudaStreamCaptureStatusNone : stream->lost ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *to, cudaGraph_t graph, unsigned long long flags) {
  *to = (cudaGraphExec_t)used((struct graph *)graph);
  __atomic_add_fetch(&launchable, 1, __ATOMIC_RELAXED);
  return cudaSuccess;
}
API cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t handle) {
  struct stream *stream = stream_of(handle);
  cudaError_t error = refused(stream, "a graph for the default stream");
  if (error) return error;
  if (stream && stream->captured) return lose(stream, cudaErrorStreamCaptureUnsupported, "a graph launch");
  count(GRAPH_LAUNCHES, 1);
  for (struct node *it = ((struct graph *)graph)->first; it; it = it->next) {
    if (it->counter == LAUNCHES || it->counter == PRODUCTS || it->counter == CUDNN) count(GRAPH_KERNELS, 1);
    if (it->act) it->act(it->data, 1);
  }
  return cudaSuccess;
}
API cudaError_t cudaGraphDestroy(cudaGraph_t graph) { give_up((struct graph *)graph); return cudaSuccess; }
API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  __atomic_sub_fetch(&launchable, 1, __ATOMIC_RELAXED);
  give_up((struct graph *)graph);
  return cudaSuccess;
}

static cudaError_t new_stream(cudaStream_t *to, int blocks) {
  struct stream *stream = calloc(1, sizeof *stream);
  stream->blocks = blocks;
  stream->device = device_now();
  *to = (cudaStream_t)stream;
  return cudaSuccess;
}
API cudaError_t cudaStreamCreate(cudaStream_t *to) { return new_stream(to, 1); }
API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *to, unsigned flags) { return new_stream(to, !(flags & cudaStreamNonBlocking)); }
API cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  struct stream *stream = stream_of(handle);
  if (stream->captured) give_up(end_capture(stream));
  free(stream);
  return cudaSuccess;
}
API cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  struct stream *stream = stream_of(handle);
  if (stream && stream->captured) return lose(stream, cudaErrorStreamCaptureUnsupported, "a synchronisation");
  cudaError_t error = refused(stream, "a synchronisation of the default stream");
  if (!error) count(SYNCHRONISATIONS, 1);
  return error ? error : failure();
}
API cudaError_t cudaDeviceSynchronize(void) {
  cudaError_t error = prohibited("a synchronisation of the device");
  if (!error) count(SYNCHRONISATIONS, 1);
  return error ? error : failure();
}

static cudaError_t new_event(cudaEvent_t *to) { *to = calloc(1, sizeof(struct event)); return cudaSuccess; }
API cudaError_t cudaEventCreate(cudaEvent_t *to) { return new_event(to); }
API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *to, unsigned flags) { return new_event(to); }
API cudaError_t cudaEventDestroy(cudaEvent_t event) { free(event); return cudaSuccess; }
API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  struct stream *stream = stream_of(handle);
  cudaError_t error = refused(stream, "an event of the default stream");
  if (!error) ((struct event *)event)->stream = stream && stream->captured ? stream : 0;
  return error;
}
API cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags) {
  struct stream *stream = stream_of(handle), *other = ((struct event *)event)->stream;
  if (other && other != stream) end_process("a second stream in one capture is not emulated");
  if (stream && stream->captured && !other) return lose(stream, cudaErrorStreamCaptureIsolation, "a wait for an event of another stream");
  return refused(stream, "a wait of the default stream");
}
API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  struct stream *stream = ((struct event *)event)->stream;
  if (stream && stream->captured) return lose(stream, cudaErrorCapturedEvent, "a wait for an event of the capture");
  count(SYNCHRONISATIONS, 1);
  return failure();
}
API cudaError_t cudaEventElapsedTime(float *to, cudaEvent_t from, cudaEvent_t until) { *to = 0.01f; return cudaSuccess; }
