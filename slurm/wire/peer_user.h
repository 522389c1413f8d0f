// PeerUsers: which user of this machine is at the other end of a TCP connection. Asks the kernel
// (sock_diag(7)), which needs no privilege. One thread.
#pragma once

#include <cstdint>
#include <optional>

#include <sys/types.h>

#include "src/base/file.h"

namespace trireme {

class PeerUsers {
 public:
  PeerUsers();
  // Nothing where the other end is on another machine or in another network namespace, has gone, or
  // where this kernel does not tell.
  std::optional<uid_t> user_of(int connected_socket);

 private:
  UniqueHandle<FileDescriptorTraits> kernel_;
  std::uint32_t asked_ = 0;
};

}  // namespace trireme
