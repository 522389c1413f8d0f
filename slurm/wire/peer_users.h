// PeerUsers finds out which user of this machine is at the other end of a TCP connection. It asks
// the kernel (sock_diag(7)), which requires no privileges. Used by one thread.
#pragma once

#include <cstdint>
#include <optional>

#include <sys/types.h>

#include "src/base/file.h"

namespace trireme {

class PeerUsers {
 public:
  PeerUsers();
  // Returns nullopt if the other end is on another machine or in another network namespace, is
  // gone, or if the kernel does not support the question.
  std::optional<uid_t> user_of(int connected_socket);

 private:
  UniqueHandle<FileDescriptorTraits> kernel_;
  std::uint32_t asked_ = 0;
};

}  // namespace trireme
