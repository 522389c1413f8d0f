// CopyReceiver receives copies of other nodes' checkpoints into this node's memory, one at a time,
// on a thread of its own. A step appears under its final name only after all its bytes have arrived
// and match their digests; older copies from the same node are then removed. Owned by the agent.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "slurm/wire/gate.h"

namespace trireme {

class CopyReceiver {
 public:
  // Copies are stored below <node_folder>/memory/partner.
  CopyReceiver(std::filesystem::path node_folder, LaunchSecret secret, const std::string& address,
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
