// CopySender copies this node's newest checkpoint in memory to the partner node, on a thread of its
// own. It compares what it sends with the digests in the step's manifest, so that files which the
// next step has overwritten meanwhile are not sent as part of this one. Owned by the agent.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "slurm/wire/handshake.h"

namespace trireme {

struct Partner {
  std::string node = {};  // empty if there is no partner
  int port = 0;
  std::vector<std::string> addresses = {};
};

class CopySender {
 public:
  CopySender(std::filesystem::path node_folder, std::string node, LaunchSecret secret);
  ~CopySender();
  CopySender(const CopySender&) = delete;
  CopySender& operator=(const CopySender&) = delete;

  // Later copies go to `partner`, which also receives the newest step at once.
  void set_partner(Partner partner);
  // Returns why the latest copy failed, or "" if it succeeded.
  std::string trouble() const;

 private:
  void work();
  void report(const std::string& trouble, const Partner& partner);
  void copy_newest(const Partner& partner);
  void copy(const std::filesystem::path& step, const Partner& partner) const;
  void send_file(Connection& to, const std::filesystem::path& path, std::uint64_t digest) const;
  std::optional<std::string> answer_of(Connection& to) const;
  // Sends what is queued. Throws IoError if the partner stops reading or a new order has come.
  void drain(Connection& to) const;
  bool has_new_order() const { return orders_ != followed_; }

  std::filesystem::path own_;
  std::string node_;
  LaunchSecret secret_;
  mutable std::mutex mutex_;  // guards partner_, trouble_ and stop_
  std::condition_variable changed_;
  Partner partner_;
  std::string trouble_;
  bool stop_ = false;
  // Counts changes of the partner and the request to end.
  std::atomic<int> orders_ = 0;
  // The following members are used by the thread only.
  int followed_ = 0;       // value of orders_ when the current copy began
  bool reported_ = false;  // whether the latest failure has been reported
  std::string done_step_;
  std::string done_partner_;
  int done_port_ = 0;  // identifies the agent: a restarted one has another port and no copies
  std::thread thread_;
};

}  // namespace trireme
