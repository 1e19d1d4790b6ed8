/*
 * A disk that fails on demand, for LD_PRELOAD under an unchanged program. It stands between the program and libc, for the files below DISK_FOLDER alone.
 *
 * - DISK_CONTROL names a file of 4 KiB that the test writes and every process of the program maps: which operation fails, where, how and how often.
 * - DISK_JOURNAL names a file to which every change of the files is appended, with its bytes and in its order, and each sync with its begin and end. From
 *   it the test makes the files that a power cut at any point may leave.
 * - After a failed sync, each descriptor that was open then gets the error once, as on Linux since 4.13 (errseq_t). Later descriptors do not.
 *
 * What a program writes through mmap is not seen. SQLite does that with the -shm file only, which holds nothing that must survive.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Kinds of operations, as bits of `kinds`. GROWING limits WRITE to those that make a file longer, which is what a full disk refuses. */
enum { WRITE = 1, SYNC = 2, TRUNCATE = 4, CREATE = 8, REMOVE = 16, READ = 32, GROWING = 64 };
/* What a fault does: the error; half of the bytes, and the error for the rest; the end of the process, before the operation or after half of it. */
enum { FAIL, HALF, KILL, KILL_HALF };

/* faults.ts writes the same layout. */
struct control {
  atomic_int kinds, skip, times, error, how, hold;
  /* Matching operations and faults since the test armed it, syncs that are held, failed syncs ever. */
  atomic_int seen, hits, held, failed_syncs;
  char part[128];
};

struct record {
  uint8_t kind, ok;
  uint16_t path_bytes;
  uint32_t data_bytes;
  int64_t at;
};
/* Kinds of records. power-loss.ts reads them. */
enum { WROTE = 'w', TRUNCATED = 't', CREATED = 'c', REMOVED = 'r', SYNC_BEGAN = 'b', SYNC_ENDED = 'e' };

#define MOST_FILES 65536
static struct control *control;
static const char *folder;
static int journal = -1;
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static int failures_seen[MOST_FILES];

__attribute__((constructor)) static void begin(void) {
  const char *name = getenv("DISK_CONTROL");
  folder = getenv("DISK_FOLDER");
  if (!name || !folder) return;
  int file = syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC);
  void *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file < 0 || mapped == MAP_FAILED) abort();
  close(file);
  control = mapped;
  name = getenv("DISK_JOURNAL");
  if (name) journal = syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
}

static int is_ours(const char *path) {
  return control && strncmp(path, folder, strlen(folder)) == 0;
}

static int path_of(int file, char path[512]) {
  char link[40];
  if (!control || file < 0) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, 511);
  if (length < 0) return 0;
  path[length] = 0;
  return is_ours(path);
}

static void note(int kind, int ok, const char *path, int64_t at, const void *data, size_t bytes) {
  if (journal < 0 || strstr(path, "-shm")) return;
  struct record head = {kind, ok, strlen(path), data ? bytes : 0, at};
  struct iovec parts[3] = {{&head, sizeof head}, {(char *)path, head.path_bytes}, {(void *)data, head.data_bytes}};
  if (syscall(SYS_writev, journal, parts, 3) < 0) abort();
}

/* A part that ends with $ is the end of a path. */
static int is_part_of(const char *path) {
  size_t part = strlen(control->part), whole = strlen(path);
  if (part == 0 || control->part[part - 1] != '$') return strstr(path, control->part) != NULL;
  return whole >= part - 1 && strncmp(path + whole - (part - 1), control->part, part - 1) == 0;
}

/* Which hit of the fault this operation is, from 1 on; 0 for none. Counts it in both cases. */
static int is_hit(int kind, const char *path, int64_t end, int file) {
  int kinds = atomic_load(&control->kinds);
  if (!(kinds & kind) || !is_part_of(path)) return 0;
  if (kind == WRITE && (kinds & GROWING)) {
    struct stat now;
    if (fstat(file, &now) == 0 && end <= now.st_size) return 0;
  }
  int number = atomic_fetch_add(&control->seen, 1), times = atomic_load(&control->times);
  if (number < atomic_load(&control->skip)) return 0;
  if (times >= 0 && number >= atomic_load(&control->skip) + times) return 0;
  int hit = atomic_fetch_add(&control->hits, 1) + 1;
  if (atomic_load(&control->how) == KILL) kill(getpid(), SIGKILL), pause();
  return hit;
}

static int fails(int kind, const char *path) {
  if (!is_hit(kind, path, 0, -1)) return 0;
  errno = atomic_load(&control->error);
  return 1;
}

static ssize_t real_write(int file, const void *data, size_t bytes, int64_t at) {
  return at < 0 ? syscall(SYS_write, file, data, bytes) : syscall(SYS_pwrite64, file, data, bytes, at);
}

/* `at` is -1 for a write at the descriptor's position. */
static ssize_t written(int file, const void *data, size_t bytes, int64_t at) {
  char path[512];
  if (!path_of(file, path)) return real_write(file, data, bytes, at);
  pthread_mutex_lock(&order);
  struct stat now = {0};
  int64_t from = at;
  if (at < 0) from = (fcntl(file, F_GETFL) & O_APPEND) && fstat(file, &now) == 0 ? now.st_size : lseek(file, 0, SEEK_CUR);
  int how = atomic_load(&control->how), hit = is_hit(WRITE, path, from + bytes, file);
  size_t most = !hit ? bytes : (how == HALF && hit == 1) || how == KILL_HALF ? bytes / 2 : 0;
  ssize_t done = most > 0 ? real_write(file, data, most, at) : 0;
  if (done > 0) note(WROTE, 1, path, from, data, done);
  if (hit && how == KILL_HALF) kill(getpid(), SIGKILL), pause();
  int error = hit && done == 0 ? atomic_load(&control->error) : errno;
  pthread_mutex_unlock(&order);
  errno = error;
  return hit && done == 0 ? -1 : done;
}

ssize_t write(int file, const void *data, size_t bytes) { return written(file, data, bytes, -1); }
ssize_t pwrite64(int file, const void *data, size_t bytes, off64_t at) { return written(file, data, bytes, at); }
ssize_t pwrite(int file, const void *data, size_t bytes, off_t at) { return written(file, data, bytes, at); }

/* Written part by part. A program must go on after a short write anyway. */
ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) {
  ssize_t sum = 0;
  for (int part = 0; part < count; part++) {
    ssize_t done = written(file, parts[part].iov_base, parts[part].iov_len, at + sum);
    if (done < 0) return sum > 0 ? sum : -1;
    sum += done;
    if (done < (ssize_t)parts[part].iov_len) break;
  }
  return sum;
}
ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t at) { return pwritev(file, parts, count, at); }

static int synced(int file, int call) {
  char path[512];
  if (!path_of(file, path)) return syscall(call, file);
  pthread_mutex_lock(&order);
  note(SYNC_BEGAN, 1, path, (int64_t)gettid() << 32 | file, NULL, 0);
  pthread_mutex_unlock(&order);
  if (is_part_of(path) && atomic_load(&control->hold)) {
    atomic_fetch_add(&control->held, 1);
    while (atomic_load(&control->hold)) usleep(500);
    atomic_fetch_sub(&control->held, 1);
  }
  int failed = fails(SYNC, path);
  if (failed) atomic_fetch_add(&control->failed_syncs, 1);
  int earlier = file < MOST_FILES && is_part_of(path) && failures_seen[file] < atomic_load(&control->failed_syncs);
  if (earlier) failures_seen[file] = atomic_load(&control->failed_syncs);
  int error = failed || earlier ? atomic_load(&control->error) : 0;
  int result = error ? -1 : syscall(call, file);
  pthread_mutex_lock(&order);
  note(SYNC_ENDED, result == 0, path, (int64_t)gettid() << 32 | file, NULL, 0);
  pthread_mutex_unlock(&order);
  if (error) errno = error;
  return result;
}

int fsync(int file) { return synced(file, SYS_fsync); }
int fdatasync(int file) { return synced(file, SYS_fdatasync); }

int ftruncate64(int file, off64_t length) {
  char path[512];
  if (!path_of(file, path)) return syscall(SYS_ftruncate, file, length);
  if (fails(TRUNCATE, path)) return -1;
  pthread_mutex_lock(&order);
  int result = syscall(SYS_ftruncate, file, length);
  if (result == 0) note(TRUNCATED, 1, path, length, NULL, 0);
  pthread_mutex_unlock(&order);
  return result;
}
int ftruncate(int file, off_t length) { return ftruncate64(file, length); }

static ssize_t got(int file, void *data, size_t bytes, int64_t at) {
  char path[512];
  if (control && (atomic_load(&control->kinds) & READ) && path_of(file, path) && fails(READ, path)) return -1;
  return at < 0 ? syscall(SYS_read, file, data, bytes) : syscall(SYS_pread64, file, data, bytes, at);
}
ssize_t read(int file, void *data, size_t bytes) { return got(file, data, bytes, -1); }
ssize_t pread64(int file, void *data, size_t bytes, off64_t at) { return got(file, data, bytes, at); }
ssize_t pread(int file, void *data, size_t bytes, off_t at) { return got(file, data, bytes, at); }

static int opened(const char *path, int flags, mode_t mode) {
  int ours = is_ours(path), creates = ours && (flags & O_CREAT) && access(path, F_OK) != 0;
  if (creates && fails(CREATE, path)) return -1;
  pthread_mutex_lock(&order);
  int file = syscall(SYS_openat, AT_FDCWD, path, flags, mode), error = errno;
  if (file >= 0 && creates) note(CREATED, 1, path, 0, NULL, 0);
  if (file >= 0 && ours && !creates && (flags & O_TRUNC)) note(TRUNCATED, 1, path, 0, NULL, 0);
  if (file >= 0 && file < MOST_FILES) failures_seen[file] = control ? atomic_load(&control->failed_syncs) : 0;
  pthread_mutex_unlock(&order);
  errno = error;
  return file;
}

#define MODE_OF(flags, mode) \
  mode_t mode = 0; \
  if ((flags) & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); }
int open(const char *path, int flags, ...) { MODE_OF(flags, mode); return opened(path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE_OF(flags, mode); return opened(path, flags | O_LARGEFILE, mode); }

int unlink(const char *path) {
  if (!is_ours(path)) return syscall(SYS_unlinkat, AT_FDCWD, path, 0);
  if (fails(REMOVE, path)) return -1;
  pthread_mutex_lock(&order);
  int result = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
  if (result == 0) note(REMOVED, 1, path, 0, NULL, 0);
  pthread_mutex_unlock(&order);
  return result;
}
