/* The border between trireme and an MPI library: plain C over bytes.
 *
 * MPI libraries differ in their handles, so the program never includes mpi.h: plugin.c does, and is
 * compiled once for each library:   mpicc -shared -fPIC -O2 -o trireme-mpi.so plugin.c
 *
 * Functions return 0 or the library's error code, which `explain` puts into words. The program
 * makes one call at a time, from any thread. */
#ifndef TRIREME_MPI_PLUGIN_H_
#define TRIREME_MPI_PLUGIN_H_
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counts up with every change of the table: another number is refused. */
#define TRIREME_MPI_TABLE 3

/* A request or a message, in the library's own representation. */
typedef struct TriremeMpiHandle {
  uint64_t bits;
} TriremeMpiHandle;

/* Each its own communicator: what goes over one never matches the others. */
enum { TRIREME_MPI_DATA, TRIREME_MPI_NEWS, TRIREME_MPI_LINKS, TRIREME_MPI_CHANNELS };

enum { TRIREME_MPI_ANY = -1 }; /* as `from`: whoever sends */

/* What a change of a window does with values: whole numbers of 8 bytes, or floats. */
enum { TRIREME_MPI_PUT_I64, TRIREME_MPI_PUT_F32, TRIREME_MPI_ADD_F32 };

typedef struct TriremeMpiTable {
  uint32_t version; /* TRIREME_MPI_TABLE */
  uint32_t bytes;   /* sizeof(TriremeMpiTable) */

  /* Before `join`, too: the library in its own words. */
  int (*library)(char* text, int capacity);

  /* Once per process. `threads` becomes 0 where the library allows calls from one thread only. */
  int (*join)(int* threads);
  int (*place)(int* rank, int* size, int* largest_tag);
  int (*processor)(char* text, int capacity);

  int (*send)(int channel, int to, int tag, const void* data, int bytes, TriremeMpiHandle* request);
  /* Like `send`, but not done before the message is found. */
  int (*send_to_finder)(int channel, int to, int tag, const void* data, int bytes,
                        TriremeMpiHandle* request);
  /* Takes the next message of that sender and tag out of the queue, if there is one (`found`), so
   * that its length is known before memory is given to it. `receive` fetches what was found. */
  int (*find)(int channel, int from, int tag, int* found, int* bytes, TriremeMpiHandle* message);
  int (*receive)(TriremeMpiHandle* message, void* data, int bytes, TriremeMpiHandle* request);
  /* values = the sum of all ranks' values. Every rank calls it, in the same order. */
  int (*sum)(float* values, int count, TriremeMpiHandle* request);
  int (*test)(TriremeMpiHandle* request, int* done);

  /* Memory that all ranks reach, `bytes` of each, of which the first `zeroed` are zero. Every rank
   * calls it, once. */
  int (*window_open)(uint64_t bytes, uint64_t zeroed);
  /* Values at byte `at` of that rank's part. A change and a read are done after the flush. What
   * others change at the same time must be counts. */
  int (*window_change)(int rank, uint64_t at, const void* values, int count, int kind);
  int (*window_read)(int rank, uint64_t at, void* values, int bytes);
  int (*window_flush)(int rank);
  /* Adds to a whole number; `before` is what it was. At once. */
  int (*window_count)(int rank, uint64_t at, int64_t amount, int64_t* before);
  int (*window_close)(void); /* every rank calls it */

  void (*explain)(int error, char* text, int capacity);

  /* Every rank calls it, with no request left. A process that ends after `join` without it takes
   * the job down with MPI_Abort, `patience_ms` after its exit() began. */
  int (*leave)(void);
  void (*set_patience)(int patience_ms);
  void (*end)(int code); /* of the whole job, at once */
} TriremeMpiTable;

/* What the program looks for in the plugin. */
const TriremeMpiTable* trireme_mpi_table(void);

#ifdef __cplusplus
}
#endif
#endif /* TRIREME_MPI_PLUGIN_H_ */
