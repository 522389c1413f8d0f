// A SyscallFilter forbids this process for good to start other programs and to open sockets of
// families that training does not need, by a seccomp filter of the kernel (seccomp(2)) over all its
// threads and over the processes that they make. The kernel answers in their place:
//
//   execve, execveat                      EPERM, after this object was told
//   socket, socketpair                    EAFNOSUPPORT, unless the family is AF_UNIX, AF_INET,
//                                         AF_INET6 or AF_NETLINK
//   the former with SOCK_RAW, SOCK_PACKET EPERM for AF_INET and AF_INET6
//   io_uring_setup                        EPERM, since io_uring makes sockets without system calls
//   system calls of other architectures   the process is killed (SIGSYS)
//
// Everything else is as before; docs/security.md says what this does not stop. The filter cannot be
// taken off: it outlives this object, and then execve fails with ENOSYS. A thread of this object
// receives what the kernel reports; signals are as its creator has them. One object per process.
#pragma once

#include <mutex>
#include <string>
#include <thread>

#include "src/base/file.h"
#include "src/base/pipe.h"

namespace trireme {

class SyscallFilter {
 public:
  // Throws PolicyError if this kernel, or what this process runs in, does not let it filter.
  SyscallFilter();
  SyscallFilter(const SyscallFilter&) = delete;
  SyscallFilter& operator=(const SyscallFilter&) = delete;
  ~SyscallFilter();

  // Throws PolicyError that names the first program that this process, or one that it has made,
  // tried to start. Callable from any thread.
  void check() const;

  // Returns why this host cannot filter, or "". Changes nothing.
  static std::string obstacle();

 private:
  void receive();
  void answer_one();

  UniqueHandle<FileDescriptorTraits> reports_;  // from the kernel
  Pipe end_;                                    // closing it ends the thread
  mutable std::mutex mutex_;
  std::string refusal_;
  std::thread receiver_;
};

}  // namespace trireme
