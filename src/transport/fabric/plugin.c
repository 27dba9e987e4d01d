/* The only file that knows libfabric: see plugin.h. */
#define _GNU_SOURCE
#include "plugin.h"

#include <errno.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
  kPieces = 4,          /* on their way at a time */
  kYields_us = 100,     /* of a provider that cannot block: how long it looks again and again */
  kNap_us = 20,         /* ... and then how often, */
  kLongestNap_us = 200, /* when nothing has moved for a while */
  kBlock_ms = 20,       /* between looks at whether to go on */
  kMostAddress = 256
};
static const uint64_t kPiece = 4 << 20;

struct TriremeFabricEnd {
  struct fi_info* info;
  struct fid_fabric* fabric;
  struct fid_domain* domain;
  struct fid_av* av;
  struct fid_cq* cq;
  struct fid_ep* ep;
  fi_addr_t peer;
  int in_memory; /* provider shm: a name in /dev/shm, and nothing to block on */
  int met;       /* both have mapped each other */
  int woken;     /* of one that naps */
  char names[2][kMostAddress];
};

static void Library(char* text, int capacity) {
  const uint32_t version = fi_version();
  snprintf(text, (size_t)capacity, "libfabric %u.%u", FI_MAJOR(version), FI_MINOR(version));
}

static int Close(TriremeFabricEnd* end) {
  if (end->ep) fi_close(&end->ep->fid);
  if (end->cq) fi_close(&end->cq->fid);
  if (end->av) fi_close(&end->av->fid);
  if (end->domain) fi_close(&end->domain->fid);
  if (end->fabric) fi_close(&end->fabric->fid);
  if (end->info) fi_freeinfo(end->info);
  free(end);
  return 0;
}

/* First what needs least of the program; memory that must be registered and addresses that count
 * from 0 are for hardware. */
static int FindProvider(TriremeFabricEnd* end, const char* provider, const char* host) {
  static const int kModes[] = {0, FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY};
  int i, error = -FI_ENODATA;
  for (i = 0; i < 2 && error == -FI_ENODATA; ++i) {
    struct fi_info* hints = fi_allocinfo();
    if (!hints) return -FI_ENOMEM;
    hints->caps = FI_RMA;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
    hints->domain_attr->threading = FI_THREAD_SAFE;
    hints->domain_attr->mr_mode = kModes[i];
    hints->fabric_attr->prov_name = strdup(provider);
    error = fi_getinfo(FI_VERSION(1, 11), host, NULL, host ? FI_SOURCE : 0, hints, &end->info);
    fi_freeinfo(hints);
  }
  return error == -FI_ENODATA ? TRIREME_FABRIC_NO_PROVIDER : error;
}

static int Open(const char* provider, const char* host, TriremeFabricEnd** out) {
  struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_UNSPEC};
  struct fi_av_attr av = {.type = FI_AV_TABLE, .count = 1};
  int error;
  TriremeFabricEnd* end = calloc(1, sizeof(*end));
  if (!end) return -FI_ENOMEM;
  end->in_memory = strcmp(provider, "shm") == 0;
  if (end->in_memory || host[0] == '\0') host = NULL;
  if (end->in_memory) cq.wait_obj = FI_WAIT_NONE;
  error = FindProvider(end, provider, host);
  if (!error) error = fi_fabric(end->info->fabric_attr, &end->fabric, NULL);
  if (!error) error = fi_domain(end->fabric, end->info, &end->domain, NULL);
  if (!error) error = fi_av_open(end->domain, &av, &end->av, NULL);
  if (!error) error = fi_cq_open(end->domain, &cq, &end->cq, NULL);
  if (!error) error = fi_endpoint(end->domain, end->info, &end->ep, NULL);
  if (!error) error = fi_ep_bind(end->ep, &end->av->fid, 0);
  if (!error) error = fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV);
  if (!error) error = fi_enable(end->ep);
  if (error) {
    Close(end);
  } else {
    *out = end;
  }
  return error;
}

static int StaysHere(TriremeFabricEnd* end) { return end->in_memory; }

/* As a file of /dev/shm is called: fi_shm://NAME. */
static void KeepName(TriremeFabricEnd* end, int which, const void* address, int count) {
  char text[kMostAddress] = "";
  const char* name;
  if (!end->in_memory || count >= kMostAddress) return;
  memcpy(text, address, (size_t)count);
  name = strstr(text, "://");
  strcpy(end->names[which], name ? name + 3 : text);
}

static int Address(TriremeFabricEnd* end, void* bytes, int* count) {
  size_t length = (size_t)*count;
  const int error = fi_getname(&end->ep->fid, bytes, &length);
  if (error) return error;
  *count = (int)length;
  KeepName(end, 0, bytes, *count);
  return 0;
}

static int Reach(TriremeFabricEnd* end, const void* address, int count) {
  char text[kMostAddress] = "";
  int added;
  if (count >= kMostAddress) return -FI_EINVAL;
  memcpy(text, address, (size_t)count);
  KeepName(end, 1, address, count);
  added = fi_av_insert(end->av, text, 1, &end->peer, 0, NULL);
  return added == 1 ? 0 : added < 0 ? added : -FI_EADDRNOTAVAIL;
}

static int Share(TriremeFabricEnd* end, void* memory, uint64_t bytes, int writable, uint64_t key,
                 TriremeFabricPart* part) {
  const int mode = end->info->domain_attr->mr_mode;
  const size_t key_bytes = end->info->domain_attr->mr_key_size;
  struct fid_mr* region = NULL;
  int error;
  if (key_bytes < 8) key &= (UINT64_C(1) << 8 * key_bytes) - 1;
  error = fi_mr_reg(end->domain, memory, bytes, writable ? FI_REMOTE_WRITE : FI_REMOTE_READ, 0,
                    mode & FI_MR_PROV_KEY ? 0 : key, 0, &region, NULL);
  if (error) return error;
  part->handle = region;
  part->at = mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)memory : 0;
  part->key = fi_mr_key(region);
  return 0;
}

static int Unshare(TriremeFabricPart* part) {
  return fi_close(&((struct fid_mr*)part->handle)->fid);
}

static int64_t Now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static void Nap(int64_t* pause_us) {
  const struct timespec pause = {0, *pause_us * 1000};
  nanosleep(&pause, NULL);
  *pause_us = *pause_us * 5 / 4 + 1 < kLongestNap_us ? *pause_us * 5 / 4 + 1 : kLongestNap_us;
}

/* How many completions are there within that time, or an error. A thread that blocks is what makes
 * a provider move anything: rxm's automatic progress is no thread of its own. */
static int Complete(TriremeFabricEnd* end, int milliseconds) {
  struct fi_cq_entry entries[kPieces];
  struct fi_cq_err_entry wrong;
  ssize_t count;
  if (!end->in_memory) {
    count = fi_cq_sread(end->cq, entries, kPieces, NULL, milliseconds);
  } else {
    const int64_t begin = Now_us();
    int64_t pause_us = kNap_us;
    while ((count = fi_cq_read(end->cq, entries, kPieces)) == -FI_EAGAIN &&
           Now_us() - begin < milliseconds * INT64_C(1000) &&
           !__atomic_exchange_n(&end->woken, 0, __ATOMIC_ACQ_REL)) {
      if (Now_us() - begin < kYields_us) {
        sched_yield();
      } else {
        Nap(&pause_us);
      }
    }
  }
  if (count == -FI_EAGAIN || count == -FI_EINTR || count == -EINTR) return 0;
  if (count != -FI_EAVAIL) return (int)count;
  memset(&wrong, 0, sizeof(wrong));
  count = fi_cq_readerr(end->cq, &wrong, 0);
  return count < 0 ? (int)count : wrong.err ? -wrong.err : -FI_EOTHER;
}

/* Each maps the other's memory by its name, once; afterwards the names would only stay behind when
 * somebody is killed. */
static void Meet(TriremeFabricEnd* end) {
  int i;
  if (end->met) return;
  end->met = 1;
  for (i = 0; end->in_memory && i < 2; ++i) shm_unlink(end->names[i]);
}

struct Moving {
  struct fi_context2 contexts[kPieces];
  struct fid_mr* local;
  uint64_t posted, done;
};

static int Post(TriremeFabricEnd* end, struct Moving* moving, int writes, char* bytes,
                uint64_t count, uint64_t at, uint64_t key) {
  void* const context = &moving->contexts[moving->posted % kPieces];
  void* const desc = moving->local ? fi_mr_desc(moving->local) : NULL;
  const ssize_t error = writes ? fi_write(end->ep, bytes, count, desc, end->peer, at, key, context)
                               : fi_read(end->ep, bytes, count, desc, end->peer, at, key, context);
  return (int)error;
}

static int Move(TriremeFabricEnd* end, int writes, char* bytes, uint64_t count, uint64_t at,
                uint64_t key, const TriremeFabricWatch* watch) {
  const uint64_t largest =
      end->info->ep_attr->max_msg_size < kPiece ? end->info->ep_attr->max_msg_size : kPiece;
  const uint64_t pieces = count == 0 ? 1 : (count + largest - 1) / largest;
  const uint64_t piece = (count + pieces - 1) / pieces; /* none of them is short */
  /* Whoever is killed inside a call to the provider shm leaves a lock behind that others wait for
   * without end. The other end holds its lock while it copies: nothing is posted meanwhile. */
  const uint64_t most = end->in_memory ? 1 : kPieces;
  struct Moving moving = {.posted = 0};
  int64_t moved_us = Now_us(), pause_us = 1;
  int error = 0;
  if (count == 0) return 0;
  if (!end->ep) return -FI_EOPBADSTATE;
  if (end->info->domain_attr->mr_mode & FI_MR_LOCAL) {
    error = fi_mr_reg(end->domain, bytes, count, writes ? FI_WRITE : FI_READ, 0, 0, 0,
                      &moving.local, NULL);
    if (error) return error;
  }
  while (moving.done < pieces && !error) {
    int done = 0, is_full = 0;
    while (moving.posted < pieces && moving.posted - moving.done < most && !is_full && !error) {
      const uint64_t begin = piece * moving.posted;
      const uint64_t length = count - begin < piece ? count - begin : piece;
      error = Post(end, &moving, writes, bytes + begin, length, at + begin, key);
      is_full = error == -FI_EAGAIN;
      if (is_full) {
        error = 0;
      } else if (!error) {
        ++moving.posted;
      }
    }
    if (error) break;
    done = Complete(end, is_full && moving.posted == moving.done ? 0 : kBlock_ms);
    if (done > 0) {
      moving.done += (uint64_t)done;
      moved_us = Now_us();
      pause_us = 1;
      Meet(end);
    } else if (done < 0) {
      error = done;
    } else {
      if (is_full) Nap(&pause_us); /* a connection is being made */
      if (watch->goes_on && !watch->goes_on(watch->state)) error = TRIREME_FABRIC_STOPPED;
      if (Now_us() - moved_us > watch->patience_ms * INT64_C(1000)) error = TRIREME_FABRIC_LATE;
    }
  }
  if (error && moving.posted > moving.done) { /* now, while the bytes are still there */
    fi_close(&end->ep->fid);
    end->ep = NULL;
  }
  if (moving.local) fi_close(&moving.local->fid);
  return error;
}

static int Write(TriremeFabricEnd* end, const void* from, uint64_t bytes, uint64_t at, uint64_t key,
                 const TriremeFabricWatch* watch) {
  return Move(end, 1, (char*)(uintptr_t)from, bytes, at, key, watch);
}

static int Read(TriremeFabricEnd* end, void* into, uint64_t bytes, uint64_t at, uint64_t key,
                const TriremeFabricWatch* watch) {
  return Move(end, 0, into, bytes, at, key, watch);
}

static int Serve(TriremeFabricEnd* end, int milliseconds) {
  const int count = Complete(end, milliseconds);
  return count < 0 ? count : 0;
}

static void Wake(TriremeFabricEnd* end) {
  if (end->in_memory) {
    __atomic_store_n(&end->woken, 1, __ATOMIC_RELEASE);
  } else {
    fi_cq_signal(end->cq);
  }
}

static void Explain(int error, char* text, int capacity) {
  switch (error) {
    case TRIREME_FABRIC_LATE:
      snprintf(text, (size_t)capacity, "nothing moved in time");
      return;
    case TRIREME_FABRIC_STOPPED:
      snprintf(text, (size_t)capacity, "the connection is gone");
      return;
    case TRIREME_FABRIC_NO_PROVIDER:
      snprintf(text, (size_t)capacity, "no such provider on this machine (fi_info lists them)");
      return;
    default:
      snprintf(text, (size_t)capacity, "%s", fi_strerror(error < 0 ? -error : error));
  }
}

static const TriremeFabricTable table = {
    TRIREME_FABRIC_TABLE,
    sizeof(TriremeFabricTable),
    Library,
    Open,
    Close,
    StaysHere,
    Address,
    Reach,
    Share,
    Unshare,
    Write,
    Read,
    Serve,
    Wake,
    Explain,
};

const TriremeFabricTable* trireme_fabric_table(void) { return &table; }
