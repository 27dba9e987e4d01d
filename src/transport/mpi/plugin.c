/* The only file that knows an MPI library: see plugin.h. Standard MPI-3 calls only. */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include "plugin.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef char RequestFits[sizeof(MPI_Request) <= sizeof(TriremeMpiHandle) ? 1 : -1];
typedef char MessageFits[sizeof(MPI_Message) <= sizeof(TriremeMpiHandle) ? 1 : -1];

/* MPI is one per process, and so is what this file remembers of it. */
static MPI_Comm channels[TRIREME_MPI_CHANNELS];
static MPI_Comm sums;
static MPI_Win window = MPI_WIN_NULL;
static int joined, left, patience_ms;

static MPI_Request GetRequest(const TriremeMpiHandle* handle) {
  MPI_Request request;
  memcpy(&request, handle, sizeof(request));
  return request;
}

static void PutRequest(MPI_Request request, TriremeMpiHandle* handle) {
  handle->bits = 0;
  memcpy(handle, &request, sizeof(request));
}

static int Library(char* text, int capacity) {
  char own[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  const int error = MPI_Get_library_version(own, &length);
  if (error != MPI_SUCCESS) return error;
  snprintf(text, (size_t)capacity, "%.*s", length, own);
  return 0;
}

/* The others wait for a process that is gone; a launcher may not notice, so say it. What the
 * program had to print is printed by now. */
static void AtExit(void) {
  int finalized = 0;
  if (!joined || left) return;
  if (MPI_Finalized(&finalized) != MPI_SUCCESS || finalized) return;
  if (patience_ms > 0) {
    const struct timespec wait = {patience_ms / 1000, patience_ms % 1000 * 1000000L};
    nanosleep(&wait, NULL);
  }
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int Join(int* threads) {
  int provided = MPI_THREAD_SINGLE, error, i;
  error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
  if (error != MPI_SUCCESS) return error;
  joined = 1;
  atexit(AtExit);
  *threads = provided >= MPI_THREAD_SERIALIZED;
  /* Errors come back as codes, also those of communicators made from this one. */
  error = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (i = 0; i < TRIREME_MPI_CHANNELS && error == MPI_SUCCESS; ++i) {
    error = MPI_Comm_dup(MPI_COMM_WORLD, &channels[i]);
  }
  if (error == MPI_SUCCESS) error = MPI_Comm_dup(MPI_COMM_WORLD, &sums);
  return error;
}

static int Place(int* rank, int* size, int* largest_tag) {
  int known = 0, error;
  const int* limit = NULL;
  error = MPI_Comm_rank(MPI_COMM_WORLD, rank);
  if (error == MPI_SUCCESS) error = MPI_Comm_size(MPI_COMM_WORLD, size);
  if (error == MPI_SUCCESS) {
    error = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &known);
  }
  *largest_tag = known ? *limit : 32767; /* what the standard promises */
  return error;
}

static int Processor(char* text, int capacity) {
  char own[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  const int error = MPI_Get_processor_name(own, &length);
  if (error != MPI_SUCCESS) return error;
  snprintf(text, (size_t)capacity, "%.*s", length, own);
  return 0;
}

static int Send(int channel, int to, int tag, const void* data, int bytes,
                TriremeMpiHandle* handle) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int error = MPI_Isend(data, bytes, MPI_BYTE, to, tag, channels[channel], &request);
  PutRequest(request, handle);
  return error;
}

static int SendToFinder(int channel, int to, int tag, const void* data, int bytes,
                        TriremeMpiHandle* handle) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int error = MPI_Issend(data, bytes, MPI_BYTE, to, tag, channels[channel], &request);
  PutRequest(request, handle);
  return error;
}

static int Find(int channel, int from, int tag, int* found, int* bytes, TriremeMpiHandle* handle) {
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  const int source = from == TRIREME_MPI_ANY ? MPI_ANY_SOURCE : from;
  const int error = MPI_Improbe(source, tag, channels[channel], found, &message, &status);
  if (error != MPI_SUCCESS || !*found) return error;
  handle->bits = 0;
  memcpy(handle, &message, sizeof(message));
  return MPI_Get_count(&status, MPI_BYTE, bytes);
}

static int Receive(TriremeMpiHandle* handle, void* data, int bytes, TriremeMpiHandle* into) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Message message;
  int error;
  memcpy(&message, handle, sizeof(message));
  error = MPI_Imrecv(data, bytes, MPI_BYTE, &message, &request);
  PutRequest(request, into);
  return error;
}

static int Sum(float* values, int count, TriremeMpiHandle* handle) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int error = MPI_Iallreduce(MPI_IN_PLACE, values, count, MPI_FLOAT, MPI_SUM, sums, &request);
  PutRequest(request, handle);
  return error;
}

static int Test(TriremeMpiHandle* handle, int* done) {
  MPI_Request request = GetRequest(handle);
  const int error = MPI_Test(&request, done, MPI_STATUS_IGNORE);
  PutRequest(request, handle);
  return error;
}

/* One epoch of passive target communication, as long as the window: whoever calls says by flushes
 * what must be there. Nothing is read or written behind MPI's back. */
static int WindowOpen(uint64_t bytes, uint64_t zeroed) {
  void* memory = NULL;
  MPI_Info info = MPI_INFO_NULL;
  int error = MPI_Info_create(&info);
  if (error == MPI_SUCCESS) error = MPI_Info_set(info, "accumulate_ordering", "none");
  if (error == MPI_SUCCESS) {
    error = MPI_Win_allocate((MPI_Aint)bytes, 1, info, sums, &memory, &window);
  }
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  if (error != MPI_SUCCESS) return error;
  error = MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  if (error != MPI_SUCCESS) return error;
  memset(memory, 0, (size_t)zeroed);
  error = MPI_Barrier(sums);
  if (error == MPI_SUCCESS) error = MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
  return error;
}

static int WindowChange(int rank, uint64_t at, const void* values, int count, int kind) {
  const MPI_Datatype type = kind == TRIREME_MPI_PUT_I64 ? MPI_INT64_T : MPI_FLOAT;
  const MPI_Op op = kind == TRIREME_MPI_ADD_F32 ? MPI_SUM : MPI_REPLACE;
  return MPI_Accumulate(values, count, type, rank, (MPI_Aint)at, count, type, op, window);
}

static int WindowRead(int rank, uint64_t at, void* values, int bytes) {
  return MPI_Get(values, bytes, MPI_BYTE, rank, (MPI_Aint)at, bytes, MPI_BYTE, window);
}

static int WindowFlush(int rank) { return MPI_Win_flush(rank, window); }

static int WindowCount(int rank, uint64_t at, int64_t amount, int64_t* before) {
  const int error = MPI_Fetch_and_op(&amount, before, MPI_INT64_T, rank, (MPI_Aint)at,
                                     amount ? MPI_SUM : MPI_NO_OP, window);
  return error != MPI_SUCCESS ? error : MPI_Win_flush(rank, window);
}

static int WindowClose(void) {
  int error = MPI_Win_unlock_all(window);
  if (error == MPI_SUCCESS) error = MPI_Win_free(&window);
  return error;
}

static void Explain(int error, char* text, int capacity) {
  char own[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(error, own, &length) != MPI_SUCCESS) {
    snprintf(text, (size_t)capacity, "MPI error %d", error);
  } else {
    snprintf(text, (size_t)capacity, "%.*s", length, own);
  }
}

static int Leave(void) {
  int i;
  left = 1;
  for (i = 0; i < TRIREME_MPI_CHANNELS; ++i) MPI_Comm_free(&channels[i]);
  MPI_Comm_free(&sums);
  return MPI_Finalize();
}

static void SetPatience(int milliseconds) { patience_ms = milliseconds; }

static void End(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

static const TriremeMpiTable table = {
    TRIREME_MPI_TABLE,
    sizeof(TriremeMpiTable),
    Library,
    Join,
    Place,
    Processor,
    Send,
    SendToFinder,
    Find,
    Receive,
    Sum,
    Test,
    WindowOpen,
    WindowChange,
    WindowRead,
    WindowFlush,
    WindowCount,
    WindowClose,
    Explain,
    Leave,
    SetPatience,
    End,
};

const TriremeMpiTable* trireme_mpi_table(void) { return &table; }
