// RankWatch observes the ranks of one node through /proc and their progress pages, and kills ranks
// of old attempts. Used by one thread.
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

  // Returns the state of every rank that has a progress page, sorted by rank.
  std::vector<RankState> look();
  // Asks each rank that has exceeded its deadline to print its stacks, once per deadline. Ranks
  // that wait for such a rank give up at about the same time, and mpirun then ends all ranks.
  void ask_late(const std::vector<RankState>& ranks);
  // Kills the ranks of attempts below this one, whether they have a progress page or not.
  // Returns whether there was none.
  bool clear(std::int64_t attempt);
  // Does the same with all processes that the launchers of those attempts have left on this
  // machine, including their daemons.
  bool clear_marked(std::int64_t attempt);

 private:
  std::filesystem::path folder_;
  std::string launch_;
  std::string node_;
  // Holds the requests so far: pid and number of changes of the page.
  std::set<std::pair<std::int64_t, std::int64_t>> asked_;
  // Holds the start time of the process behind each page, because a pid can be reused. The key is
  // the pid and the creation time of the page.
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> started_;
};

// Returns whether a change should be reported before the next regular report is due.
bool is_news(const std::vector<RankState>& before, const std::vector<RankState>& now);

}  // namespace trireme
