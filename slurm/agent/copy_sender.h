// CopySender: copies this node's newest checkpoint in memory to the partner node, on a thread of
// its own. What it sends is compared with the digests of the step's own manifest: files that were
// taken for the next step meanwhile are not sent as this one. Owned by the agent.
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
  void tell(const std::string& trouble, const Partner& partner);
  void copy_newest(const Partner& partner);
  void copy(const std::filesystem::path& step, const Partner& partner) const;
  void send_file(Connection& to, const std::filesystem::path& path, std::uint64_t digest) const;
  std::optional<std::string> answer_of(Connection& to) const;
  // Until all is sent; IoError where the partner takes nothing, or a new order has come.
  void drain(Connection& to) const;
  bool has_new_order() const { return orders_ != followed_; }

  std::filesystem::path own_;
  std::string node_;
  std::string secret_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Partner partner_;
  std::string trouble_;
  bool stop_ = false;
  std::atomic<int> orders_ = 0;  // another partner, or none, or the end
  // The thread's own.
  int followed_ = 0;   // of the orders
  bool told_ = false;  // of trouble
  std::string done_step_;
  std::string done_partner_;
  int done_port_ = 0;  // a new agent there has a new one, and no copies
  std::thread thread_;
};

}  // namespace trireme
