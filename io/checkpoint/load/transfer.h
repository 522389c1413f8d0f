// Transfer: a pending send or receive that touches a buffer of ours, and must not outlive it.
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
