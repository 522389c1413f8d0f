// The asynchronous copies of one thread of a kernel: those that were issued, and the groups in
// which they were committed. A copy is performed as late as the program allows.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

namespace sim {

class AsyncCopies {
 public:
  bool empty() const { return copies_.empty(); }

  void issue(void* to, const void* from, std::size_t bytes) {
    std::memset(to, 0xFF, bytes);  // NaN until it has arrived
    copies_.push_back({to, from, bytes});
  }
  void commit() { group_ends_.push_back(copies_.size()); }
  void wait(std::size_t pending) {
    if (group_ends_.size() <= pending) {
      return;
    }
    const std::size_t finished = group_ends_.size() - pending;
    const std::size_t end = group_ends_[finished - 1];
    for (std::size_t at = 0; at < end; ++at) {
      std::memcpy(copies_[at].to, copies_[at].from, copies_[at].bytes);
    }
    copies_.erase(copies_.begin(), copies_.begin() + static_cast<std::ptrdiff_t>(end));
    group_ends_.erase(group_ends_.begin(),
                      group_ends_.begin() + static_cast<std::ptrdiff_t>(finished));
    for (std::size_t& group_end : group_ends_) {
      group_end -= end;
    }
  }
  // Forgets groups without copies, which a thread may leave behind.
  void clear() { group_ends_.clear(); }

 private:
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  std::vector<Copy> copies_;
  std::vector<std::size_t> group_ends_;  // committed; positions in copies_
};

}  // namespace sim
