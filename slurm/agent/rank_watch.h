// RankWatch: the ranks of one node as /proc and their progress pages show them; and how they are
// ended when their time is over. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "slurm/wire/messages.h"

namespace trireme {

class RankWatch {
 public:
  RankWatch(std::filesystem::path node_folder, std::string launch, std::string node)
      : folder_(std::move(node_folder)), launch_(std::move(launch)), node_(std::move(node)) {}

  // Every rank that has a page, by rank.
  std::vector<RankState> look();
  // Asks those of these ranks that have not kept their deadline for their stacks, once each time:
  // others that wait for them give up about now, and then mpirun ends them all.
  void ask_late(const std::vector<RankState>& ranks);
  // Kills the ranks of generations below this one, whether they have a page or not. Whether none is
  // left.
  bool clear(std::int64_t generation);
  // The same of all that those launchers have left on this machine, their daemons too.
  bool clear_marked(std::int64_t generation);

 private:
  std::filesystem::path folder_;
  std::string launch_;
  std::string node_;
  std::set<std::pair<std::int64_t, std::int64_t>> asked_;  // process, change of its page
  // When the process behind a page was started: its number may be given to another.
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> started_;  // by pid, page's birth
};

// Whether a change is worth telling before the next regular report.
bool is_news(const std::vector<RankState>& before, const std::vector<RankState>& now);

}  // namespace trireme
