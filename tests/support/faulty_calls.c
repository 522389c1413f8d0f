// faulty_calls is a preloaded library (LD_PRELOAD) that makes system calls on files of certain
// names fail like those of disks and file systems.
//
//   TRIREME_FAULTY_CALLS='PATTERN|CALL|NTH|ACTION[|RANK];...'
//
//   PATTERN  for the absolute path, in the form of fnmatch(3): */step-*/shard-*
//   CALL     open read write fsync close rename mkdir link unlink fallocate statvfs
//            (read is also pread; write pwrite and writev; fsync fdatasync; rename renameat2)
//   NTH      N: the N-th such call of a process; N+: also all later ones; *: every one
//   ACTION   ENOSPC, EIO, ... ; short (half, or one byte); delay=SECONDS before the call is made;
//            run=COMMAND in a shell before the call is made
//   RANK     the only rank that is affected (OMPI_COMM_WORLD_RANK)
//
// TRIREME_CLOCK_OFFSET='RANK:SECONDS[:AGAIN]' shifts the wall clock of one rank, and shifts it by
// AGAIN more from its 100th reading on. The monotonic clock is not affected.
//
// If TRIREME_FAULTY_WHILE=FILE is set, calls fail only while FILE exists. A close() that fails
// closes the descriptor nevertheless. A plan with errors ends the process with code 99. Calls that
// match no rule are passed on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { kMaxRules = 32 };

struct rule {
  char pattern[PATH_MAX];
  char call[16];
  long nth;
  int and_later;
  int error;  // an errno, or 0
  int cut_short;
  double delay_seconds;
  char command[PATH_MAX];
  long rank;  // -1 for all ranks
  atomic_long count;
};

static struct rule rules[kMaxRules];
static int rule_count = 0;
static const char* only_while = NULL;

// Declares `real`, the function that this library replaces.
#define REAL(result, name, ...)               \
  static result (*real)(__VA_ARGS__) = NULL;  \
  if (real == NULL) {                         \
    *(void**)&real = dlsym(RTLD_NEXT, #name); \
  }

static long clock_offset = 0;
static long clock_jump = 0;
static atomic_long clock_readings = 0;

static void refuse(const char* plan) {
  fprintf(stderr, "faulty_calls: cannot read '%s'\n", plan);
  _exit(99);
}

static int errno_of(const char* name) {
  for (int code = 1; code < 134; ++code) {
    const char* known = strerrorname_np(code);
    if (known != NULL && strcmp(known, name) == 0) {
      return code;
    }
  }
  return 0;
}

static void parse_rule(char* text) {
  char* save = NULL;
  const char* part[5] = {NULL, NULL, NULL, NULL, NULL};
  int parts = 0;
  for (char* p = strtok_r(text, "|", &save); p != NULL && parts < 5;
       p = strtok_r(NULL, "|", &save)) {
    part[parts++] = p;
  }
  if (parts < 4 || rule_count == kMaxRules) {
    refuse(text);
  }
  struct rule* r = &rules[rule_count++];
  snprintf(r->pattern, sizeof r->pattern, "%s", part[0]);
  snprintf(r->call, sizeof r->call, "%s", part[1]);
  char* end = NULL;
  r->nth = part[2][0] == '*' ? 1 : strtol(part[2], &end, 10);
  r->and_later = end == NULL || *end == '+';
  r->cut_short = strcmp(part[3], "short") == 0;
  r->delay_seconds = strncmp(part[3], "delay=", 6) == 0 ? strtod(part[3] + 6, NULL) : 0;
  if (strncmp(part[3], "run=", 4) == 0) {
    snprintf(r->command, sizeof r->command, "%s", part[3] + 4);
  }
  r->error = errno_of(part[3]);
  r->rank = part[4] == NULL ? -1 : strtol(part[4], NULL, 10);
  if (r->nth < 1 ||
      (!r->cut_short && r->delay_seconds <= 0 && r->command[0] == '\0' && r->error == 0)) {
    refuse(part[3]);
  }
}

static void read_clock_offset(const char* text, long own) {
  long rank = 0;
  long offset = 0;
  long jump = 0;
  if (sscanf(text, "%ld:%ld:%ld", &rank, &offset, &jump) < 2) {
    refuse(text);
  }
  if (rank == own) {
    clock_offset = offset;
    clock_jump = jump;
  }
}

__attribute__((constructor)) static void read_plan(void) {
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  const long own = rank == NULL ? 0 : strtol(rank, NULL, 10);
  const char* plan = getenv("TRIREME_FAULTY_CALLS");
  only_while = getenv("TRIREME_FAULTY_WHILE");
  if (getenv("TRIREME_CLOCK_OFFSET") != NULL) {
    read_clock_offset(getenv("TRIREME_CLOCK_OFFSET"), own);
  }
  if (plan == NULL) {
    return;
  }
  char* copy = strdup(plan);
  char* save = NULL;
  for (char* text = strtok_r(copy, ";", &save); text != NULL; text = strtok_r(NULL, ";", &save)) {
    parse_rule(text);
  }
  free(copy);
  for (int i = 0; i < rule_count; ++i) {
    if (rules[i].rank >= 0 && rules[i].rank != own) {
      rules[i].nth = LONG_MAX;
    }
  }
}

// Returns the rule that applies to this call on `path`, or NULL.
static const struct rule* strike(const char* call, const char* path) {
  const struct rule* found = NULL;
  for (int i = 0; i < rule_count; ++i) {
    struct rule* r = &rules[i];
    if (strcmp(r->call, call) != 0 || fnmatch(r->pattern, path, 0) != 0 ||
        (only_while != NULL && access(only_while, F_OK) != 0)) {
      continue;
    }
    const long count = atomic_fetch_add(&r->count, 1) + 1;
    if (count == r->nth || (r->and_later && count > r->nth)) {
      found = r;
    }
  }
  return found;
}

// Waits for the rule's delay, or runs its command. Returns the errno to fail with, or 0.
static int suffer(const struct rule* r) {
  if (r == NULL) {
    return 0;
  }
  if (r->delay_seconds > 0) {
    const time_t whole = (time_t)r->delay_seconds;
    struct timespec left = {whole, (long)(1e9 * (r->delay_seconds - (double)whole))};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
  }
  if (r->command[0] != '\0') {
    (void)!system(r->command);
  }
  return r->error;
}

// Returns 0 if the call may be made, and otherwise -1 with errno set.
static int refused_path(const char* call, const char* path) {
  const int error = rule_count == 0 ? 0 : suffer(strike(call, path));
  if (error != 0) {
    errno = error;
  }
  return error == 0 ? 0 : -1;
}

static const struct rule* strike_fd(const char* call, int fd) {
  char link[64];
  char path[PATH_MAX];
  if (rule_count == 0) {
    return NULL;
  }
  const int before = errno;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  errno = before;
  if (length <= 0) {
    return NULL;
  }
  path[length] = '\0';
  return strike(call, path);
}

static int refused_fd(const char* call, int fd) {
  const int error = suffer(strike_fd(call, fd));
  if (error != 0) {
    errno = error;
  }
  return error == 0 ? 0 : -1;
}

// Returns how many of `bytes` a transfer may move; -1 with errno set if it fails.
static ssize_t allowed(const char* call, int fd, size_t bytes) {
  const struct rule* r = strike_fd(call, fd);
  const int error = suffer(r);
  if (error != 0) {
    errno = error;
    return -1;
  }
  if (r == NULL || !r->cut_short) {
    return (ssize_t)bytes;
  }
  // Direct I/O requires whole pages, so cut between pages.
  const size_t pages = bytes / 2 / 4096 * 4096;
  const size_t some = pages > 0 ? pages : bytes % 4096 == 0 ? bytes : 1;
  return (ssize_t)some;
}

#define OPEN(name)                                                         \
  int name(const char* path, int flags, ...) {                             \
    REAL(int, name, const char*, int, ...)                                 \
    va_list list;                                                          \
    va_start(list, flags);                                                 \
    const mode_t mode = (mode_t)va_arg(list, unsigned);                    \
    va_end(list);                                                          \
    return refused_path("open", path) != 0 ? -1 : real(path, flags, mode); \
  }
OPEN(open)
OPEN(open64)

#define TRANSFER(name, call, pointer)                    \
  ssize_t name(int fd, pointer data, size_t bytes) {     \
    REAL(ssize_t, name, int, pointer, size_t)            \
    const ssize_t some = allowed(call, fd, bytes);       \
    return some < 0 ? -1 : real(fd, data, (size_t)some); \
  }
TRANSFER(read, "read", void*)
TRANSFER(write, "write", const void*)

#define TRANSFER_AT(name, call, pointer)                       \
  ssize_t name(int fd, pointer data, size_t bytes, off_t at) { \
    REAL(ssize_t, name, int, pointer, size_t, off_t)           \
    const ssize_t some = allowed(call, fd, bytes);             \
    return some < 0 ? -1 : real(fd, data, (size_t)some, at);   \
  }
TRANSFER_AT(pread, "read", void*)
TRANSFER_AT(pread64, "read", void*)
TRANSFER_AT(pwrite, "write", const void*)
TRANSFER_AT(pwrite64, "write", const void*)

ssize_t writev(int fd, const struct iovec* parts, int count) {
  REAL(ssize_t, writev, int, const struct iovec*, int)
  return refused_fd("write", fd) != 0 ? -1 : real(fd, parts, count);
}

#define SYNC(name)                                       \
  int name(int fd) {                                     \
    REAL(int, name, int)                                 \
    return refused_fd("fsync", fd) != 0 ? -1 : real(fd); \
  }
SYNC(fsync)
SYNC(fdatasync)

int close(int fd) {
  REAL(int, close, int)
  const int refused = refused_fd("close", fd);
  const int error = errno;
  const int result = real(fd);
  if (refused != 0) {
    errno = error;
  }
  return refused != 0 ? -1 : result;
}

int rename(const char* from, const char* to) {
  REAL(int, rename, const char*, const char*)
  return refused_path("rename", to) != 0 ? -1 : real(from, to);
}

int renameat2(int old_folder, const char* from, int new_folder, const char* to, unsigned flags) {
  REAL(int, renameat2, int, const char*, int, const char*, unsigned)
  return refused_path("rename", to) != 0 ? -1 : real(old_folder, from, new_folder, to, flags);
}

int link(const char* from, const char* to) {
  REAL(int, link, const char*, const char*)
  return refused_path("link", to) != 0 ? -1 : real(from, to);
}

int unlink(const char* path) {
  REAL(int, unlink, const char*)
  return refused_path("unlink", path) != 0 ? -1 : real(path);
}

int mkdir(const char* path, mode_t mode) {
  REAL(int, mkdir, const char*, mode_t)
  return refused_path("mkdir", path) != 0 ? -1 : real(path, mode);
}

#define FALLOCATE(name)                                                       \
  int name(int fd, int mode, off_t at, off_t bytes) {                         \
    REAL(int, name, int, int, off_t, off_t)                                   \
    return refused_fd("fallocate", fd) != 0 ? -1 : real(fd, mode, at, bytes); \
  }
FALLOCATE(fallocate)
FALLOCATE(fallocate64)

#define STATVFS(name, type)                                              \
  int name(const char* path, struct type* status) {                      \
    REAL(int, name, const char*, struct type*)                           \
    return refused_path("statvfs", path) != 0 ? -1 : real(path, status); \
  }
STATVFS(statvfs, statvfs)
STATVFS(statvfs64, statvfs64)

static time_t skew(void) {
  if (clock_offset == 0 && clock_jump == 0) {
    return 0;
  }
  return clock_offset + (atomic_fetch_add(&clock_readings, 1) >= 99 ? clock_jump : 0);
}

int clock_gettime(clockid_t id, struct timespec* now) {
  REAL(int, clock_gettime, clockid_t, struct timespec*)
  const int result = real(id, now);
  if (id == CLOCK_REALTIME) {
    now->tv_sec += skew();
  }
  return result;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  REAL(int, gettimeofday, struct timeval*, void*)
  const int result = real(now, zone);
  now->tv_sec += skew();
  return result;
}

time_t time(time_t* place) {
  REAL(time_t, time, time_t*)
  const time_t now = real(NULL) + skew();
  if (place != NULL) {
    *place = now;
  }
  return now;
}
