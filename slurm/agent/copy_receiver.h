// CopyReceiver: takes copies of other nodes' checkpoints into this node's memory, on a thread of
// its own, one at a time. A step appears under its name when every byte has come and has its
// digest; older copies of that node go then. Owned by the agent.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "slurm/wire/gate.h"

namespace trireme {

class CopyReceiver {
 public:
  // Below <node folder>/memory/partner.
  CopyReceiver(std::filesystem::path node_folder, std::string secret, const std::string& address,
               PortRange ports = {});
  ~CopyReceiver();
  CopyReceiver(const CopyReceiver&) = delete;
  CopyReceiver& operator=(const CopyReceiver&) = delete;

  int port() const { return gate_.port(); }

 private:
  void work();
  void serve(Gate::Caller caller) const;

  std::filesystem::path partner_;
  Gate gate_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace trireme
