/* The border between trireme and libfabric: plain C over bytes. plugin.c includes libfabric's
 * headers, the program does not, and a machine without libfabric only lacks the plugin:
 *   cc -shared -fPIC -O2 -o trireme-fabric.so plugin.c -lfabric
 *
 * An end reaches one other end, and reads and writes memory that this one shares with it. Functions
 * return 0 or an error, which `explain` puts into words. One thread may call `serve` while another
 * one calls what it likes but `close`; else an end is for one thread at a time. */
#ifndef TRIREME_FABRIC_PLUGIN_H_
#define TRIREME_FABRIC_PLUGIN_H_
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counts up with every change of the table: another number is refused. */
#define TRIREME_FABRIC_TABLE 1

typedef struct TriremeFabricEnd TriremeFabricEnd;

/* Errors of this file, beside those of libfabric. */
enum {
  TRIREME_FABRIC_LATE = 10001, /* nothing moved for `patience_ms` */
  TRIREME_FABRIC_STOPPED,      /* `goes_on` said no */
  TRIREME_FABRIC_NO_PROVIDER
};

/* Memory that the other end may reach: it names a byte by `at` and `key`. */
typedef struct TriremeFabricPart {
  void* handle;
  uint64_t at, key;
} TriremeFabricPart;

/* How long a transfer may take: asked again and again while nothing moves. */
typedef struct TriremeFabricWatch {
  int (*goes_on)(void* state); /* 0: give up */
  void* state;
  int patience_ms;
} TriremeFabricWatch;

typedef struct TriremeFabricTable {
  uint32_t version; /* TRIREME_FABRIC_TABLE */
  uint32_t bytes;   /* sizeof(TriremeFabricTable) */

  void (*library)(char* text, int capacity);

  /* `provider` as fi_info says it: "tcp;ofi_rxm", "shm". `host`: the address of this machine where
   * the other end is to find it; empty: any. Providers that stay on a machine do not need it. */
  int (*open)(const char* provider, const char* host, TriremeFabricEnd** end);
  int (*close)(TriremeFabricEnd* end); /* parts have gone before */

  int (*stays_here)(TriremeFabricEnd* end); /* 1: only between processes of one machine */
  int (*address)(TriremeFabricEnd* end, void* bytes, int* count); /* of this end; room, then used */
  int (*reach)(TriremeFabricEnd* end, const void* address, int count);

  /* `key` is a wish: random numbers cannot be guessed. */
  int (*share)(TriremeFabricEnd* end, void* memory, uint64_t bytes, int writable, uint64_t key,
               TriremeFabricPart* part);
  int (*unshare)(TriremeFabricPart* part);

  /* All of it, in pieces. When `write` returns, the bytes lie in the other end's memory. After an
   * error the end is of no use but to be closed; then nobody reaches for the bytes any more. */
  int (*write)(TriremeFabricEnd* end, const void* from, uint64_t bytes, uint64_t at, uint64_t key,
               const TriremeFabricWatch* watch);
  int (*read)(TriremeFabricEnd* end, void* into, uint64_t bytes, uint64_t at, uint64_t key,
              const TriremeFabricWatch* watch);

  /* Nothing moves at the other end's wish but in here: blocks for so long, or until `wake`. */
  int (*serve)(TriremeFabricEnd* end, int milliseconds);
  void (*wake)(TriremeFabricEnd* end);

  void (*explain)(int error, char* text, int capacity);
} TriremeFabricTable;

/* What the program looks for in the plugin. */
const TriremeFabricTable* trireme_fabric_table(void);

#ifdef __cplusplus
}
#endif
#endif /* TRIREME_FABRIC_PLUGIN_H_ */
