// CopySender: copies this node's newest checkpoint in memory to the partner node, on a thread of
// its own. What it sends is compared with the digests of the step's own manifest: files that were
// taken for the next step meanwhile are not sent as this one. Owned by the agent.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "slurm/wire/handshake.h"

namespace trireme {

struct Partner {
  std::string node = {};  // empty: none
  int port = 0;
  std::vector<std::string> addresses = {};
};

class CopySender {
 public:
  CopySender(std::filesystem::path node_folder, std::string node, std::string secret);
  ~CopySender();
  CopySender(const CopySender&) = delete;
  CopySender& operator=(const CopySender&) = delete;

  // From now on copies go there; the newest step goes there, too.
  void set_partner(Partner partner);
  // Why the latest copy did not come about; "" if it did.
  std::string trouble() const;

 private:
  void work();
  void copy_newest(const Partner& partner);
  void copy(const std::filesystem::path& step, const Partner& partner) const;

  std::filesystem::path own_;
  std::string node_;
  std::string secret_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Partner partner_;
  std::string trouble_;
  bool stop_ = false;
  // The thread's own.
  std::string done_step_;
  std::string done_partner_;
  std::thread thread_;
};

}  // namespace trireme
