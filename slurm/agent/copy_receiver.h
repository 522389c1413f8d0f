// CopyReceiver: takes copies of other nodes' checkpoints into this node's memory, on a thread of
// its own, one at a time. A step appears under its name when every byte has come and has its
// digest; older copies of that node go then. Owned by the agent.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "slurm/wire/handshake.h"

namespace trireme {

class CopyReceiver {
 public:
  // Below <node folder>/memory/partner.
  CopyReceiver(std::filesystem::path node_folder, std::string secret, const std::string& address);
  ~CopyReceiver();
  CopyReceiver(const CopyReceiver&) = delete;
  CopyReceiver& operator=(const CopyReceiver&) = delete;

  int port() const { return listener_.port(); }

 private:
  void work();
  void serve(Connection connection) const;

  std::filesystem::path partner_;
  std::string secret_;
  Listener listener_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace trireme
