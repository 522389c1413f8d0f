// call_recorder is a preloaded library (LD_PRELOAD) that records every change below a folder, by
// any process, in the order in which they happen. power_cut.py derives from this what a power cut
// could leave.
//
//   TRIREME_RECORD_ROOT=/folder TRIREME_RECORD_LOG=/file
//
// A record consists of u32 magic, u32 kind, u64 inode, u64 number, the lengths of path (u32),
// second path (u32) and data (u64), and then path, second path and data. Paths are relative to the
// folder, which is "" itself; inode is that of the changed file or folder. A lock on the log orders
// the changes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind {
  kCreate = 1,  // a new file; number: 1 for a folder
  kWrite,       // number: offset
  kSync,  // of a file or a folder
  kResize,      // number: bytes
  kRemove,  // of a name
  kRename,      // path to second path
  kLink,        // second path becomes another name of path
};

struct head {
  uint32_t magic;
  uint32_t kind;
  uint64_t inode;
  uint64_t number;
  uint32_t path_bytes;
  uint32_t second_bytes;
  uint64_t data_bytes;
};

static const char* root = NULL;
static size_t root_length = 0;
static int log_fd = -1;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

// Declares `real`, the function that this library replaces.
#define REAL(result, name, ...)               \
  static result (*real)(__VA_ARGS__) = NULL;  \
  if (real == NULL) {                         \
    *(void**)&real = dlsym(RTLD_NEXT, #name); \
  }

__attribute__((constructor)) static void open_log(void) {
  const char* path = getenv("TRIREME_RECORD_LOG");
  root = getenv("TRIREME_RECORD_ROOT");
  if (path != NULL && root != NULL) {
    root_length = strlen(root);
    log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  }
}

// Returns the part of an absolute path below the root, or NULL if the path is elsewhere.
static const char* below(const char* path) {
  if (log_fd < 0 || strncmp(path, root, root_length) != 0) {
    return NULL;
  }
  return path[root_length] == '/' ? path + root_length + 1
         : path[root_length] == 0 ? path + root_length
                                  : NULL;
}

static const char* below_fd(int fd, char* buffer) {
  char link[64];
  if (log_fd < 0) {
    return NULL;
  }
  const int before = errno;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, buffer, PATH_MAX - 1);
  errno = before;
  buffer[length < 0 ? 0 : length] = '\0';
  return below(buffer);
}

// Does the same for a path relative to a folder's descriptor.
static const char* below_at(int folder, const char* path, char* buffer) {
  if (folder == AT_FDCWD || path[0] == '/') {
    return below(path);
  }
  if (below_fd(folder, buffer) == NULL) {
    return NULL;
  }
  const size_t length = strlen(buffer);
  snprintf(buffer + length, PATH_MAX - length, "/%s", path);
  return below(buffer);
}

static void lock(void) {
  pthread_mutex_lock(&mutex);
  (void)flock(log_fd, LOCK_EX);
}

static void unlock(void) {
  (void)flock(log_fd, LOCK_UN);
  pthread_mutex_unlock(&mutex);
}

static uint64_t inode_of(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

// Appends each record to the log with a single writev().
static void record(enum kind kind, uint64_t inode, uint64_t number, const char* path,
                   const char* second, const void* data, size_t bytes) {
  REAL(ssize_t, writev, int, const struct iovec*, int)
  const int before = errno;
  struct head head = {
      0x54524543U, kind, inode, number, (uint32_t)strlen(path), (uint32_t)strlen(second), bytes};
  struct iovec parts[4] = {{&head, sizeof head},
                           {(void*)(uintptr_t)path, head.path_bytes},
                           {(void*)(uintptr_t)second, head.second_bytes},
                           {(void*)(uintptr_t)data, bytes}};
  const size_t whole = sizeof head + head.path_bytes + head.second_bytes + bytes;
  if (real(log_fd, parts, 4) != (ssize_t)whole) {
    fprintf(stderr, "call_recorder: the log is full\n");
    _exit(99);
  }
  errno = before;
}

#define OPEN(name)                                                               \
  int name(const char* path, int flags, ...) {                                   \
    REAL(int, name, const char*, int, ...)                                       \
    va_list list;                                                                \
    va_start(list, flags);                                                       \
    const mode_t mode = (mode_t)va_arg(list, unsigned);                          \
    va_end(list);                                                                \
    const char* name_below = (flags & (O_CREAT | O_TRUNC)) ? below(path) : NULL; \
    if (name_below == NULL) {                                                    \
      return real(path, flags, mode);                                            \
    }                                                                            \
    lock();                                                                      \
    const int was_there = access(path, F_OK) == 0;                               \
    const int fd = real(path, flags, mode);                                      \
    if (fd >= 0 && !was_there) {                                                 \
      record(kCreate, inode_of(fd), 0, name_below, "", "", 0);                   \
    } else if (fd >= 0 && (flags & O_TRUNC)) {                                   \
      record(kResize, inode_of(fd), 0, name_below, "", "", 0);                   \
    }                                                                            \
    unlock();                                                                    \
    return fd;                                                                   \
  }
OPEN(open)
OPEN(open64)

static void note_write(int fd, const char* path, off_t at, const void* data, ssize_t bytes) {
  if (bytes > 0) {
    record(kWrite, inode_of(fd), (uint64_t)at, path, "", data, (size_t)bytes);
  }
}

ssize_t write(int fd, const void* data, size_t bytes) {
  REAL(ssize_t, write, int, const void*, size_t)
  char buffer[PATH_MAX];
  const char* path = below_fd(fd, buffer);
  if (path == NULL) {
    return real(fd, data, bytes);
  }
  lock();
  const int appends = (fcntl(fd, F_GETFL) & O_APPEND) != 0;
  const off_t at = lseek(fd, 0, appends ? SEEK_END : SEEK_CUR);
  const ssize_t put = real(fd, data, bytes);
  note_write(fd, path, at, data, put);
  unlock();
  return put;
}

#define PWRITE(name)                                               \
  ssize_t name(int fd, const void* data, size_t bytes, off_t at) { \
    REAL(ssize_t, name, int, const void*, size_t, off_t)           \
    char buffer[PATH_MAX];                                         \
    const char* path = below_fd(fd, buffer);                       \
    if (path == NULL) {                                            \
      return real(fd, data, bytes, at);                            \
    }                                                              \
    lock();                                                        \
    const ssize_t put = real(fd, data, bytes, at);                 \
    note_write(fd, path, at, data, put);                           \
    unlock();                                                      \
    return put;                                                    \
  }
PWRITE(pwrite)
PWRITE(pwrite64)

// Makes a call on a descriptor and records it if it returns 0.
#define ON_FD(call, kind, number)                                    \
  char buffer[PATH_MAX];                                             \
  const char* path = below_fd(fd, buffer);                           \
  if (path == NULL) {                                                \
    return call;                                                     \
  }                                                                  \
  lock();                                                            \
  const int result = call;                                           \
  if (result == 0) {                                                 \
    record(kind, inode_of(fd), (uint64_t)(number), path, "", "", 0); \
  }                                                                  \
  unlock();                                                          \
  return result;

static off_t size_of(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 ? status.st_size : 0;
}

int fsync(int fd) {
  REAL(int, fsync, int)
  ON_FD(real(fd), kSync, 0)
}
int fdatasync(int fd) {
  REAL(int, fdatasync, int)
  ON_FD(real(fd), kSync, 0)
}
int ftruncate(int fd, off_t bytes) {
  REAL(int, ftruncate, int, off_t)
  ON_FD(real(fd, bytes), kResize, bytes)
}
int ftruncate64(int fd, off_t bytes) {
  REAL(int, ftruncate64, int, off_t)
  ON_FD(real(fd, bytes), kResize, bytes)
}
int fallocate(int fd, int mode, off_t at, off_t bytes) {
  REAL(int, fallocate, int, int, off_t, off_t)
  ON_FD(real(fd, mode, at, bytes), kResize, size_of(fd))
}
int fallocate64(int fd, int mode, off_t at, off_t bytes) {
  REAL(int, fallocate64, int, int, off_t, off_t)
  ON_FD(real(fd, mode, at, bytes), kResize, size_of(fd))
}

// Makes a call on names and records it if it returns 0.
#define ON_NAMES(call, kind, number, path, second, inode)    \
  const char* first_below = path;                            \
  if (first_below == NULL) {                                 \
    return call;                                             \
  }                                                          \
  lock();                                                    \
  const int result = call;                                   \
  if (result == 0) {                                         \
    record(kind, inode, number, first_below, second, "", 0); \
  }                                                          \
  unlock();                                                  \
  return result;

static uint64_t inode_at(const char* path) {
  struct stat status;
  return lstat(path, &status) == 0 ? status.st_ino : 0;
}

static const char* or_empty(const char* path) { return path == NULL ? "" : path; }

int mkdir(const char* path, mode_t mode) {
  REAL(int, mkdir, const char*, mode_t)
  ON_NAMES(real(path, mode), kCreate, 1, below(path), "", inode_at(path))
}
int rename(const char* from, const char* to) {
  REAL(int, rename, const char*, const char*)
  ON_NAMES(real(from, to), kRename, 0, below(from), or_empty(below(to)), inode_at(to))
}
int renameat2(int old_folder, const char* from, int new_folder, const char* to, unsigned flags) {
  REAL(int, renameat2, int, const char*, int, const char*, unsigned)
  ON_NAMES(real(old_folder, from, new_folder, to, flags), kRename, 0, below(from),
           or_empty(below(to)), inode_at(to))
}
int link(const char* from, const char* to) {
  REAL(int, link, const char*, const char*)
  ON_NAMES(real(from, to), kLink, 0, below(from), or_empty(below(to)), inode_at(to))
}
int unlink(const char* path) {
  REAL(int, unlink, const char*)
  ON_NAMES(real(path), kRemove, 0, below(path), "", 0)
}
int rmdir(const char* path) {
  REAL(int, rmdir, const char*)
  ON_NAMES(real(path), kRemove, 0, below(path), "", 0)
}
int remove(const char* path) {
  REAL(int, remove, const char*)
  ON_NAMES(real(path), kRemove, 0, below(path), "", 0)
}
int unlinkat(int folder, const char* path, int flags) {
  REAL(int, unlinkat, int, const char*, int)
  char buffer[PATH_MAX];
  ON_NAMES(real(folder, path, flags), kRemove, 0, below_at(folder, path, buffer), "", 0)
}
