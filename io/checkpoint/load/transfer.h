// Transfer owns a pending send or receive that uses a local buffer. If an exception destroys it
// before wait() has returned, it abandons the operation, and with it the communicator, so that
// nothing touches the buffer any more.
#pragma once

#include <utility>

#include "mpi/communicator.h"

namespace trireme {

class Transfer {
 public:
  Transfer() = default;
  ~Transfer() { pending_.abandon(); }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  void start(Pending pending) { pending_ = std::move(pending); }
  void wait() { pending_.wait(); }

 private:
  Pending pending_;
};

}  // namespace trireme
