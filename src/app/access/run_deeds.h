// Finds out what a run would read and write, and asks the policy of this host about it, without
// recording the answers. For commands that say beforehand what a start would be refused.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/policy/access.h"
#include "src/train/run/run_config.h"

namespace trireme {

// One thing that the run would do.
struct CheckedDeed {
  std::string what;  // key of the configuration
  Request request;
  Decision decision;
};

class RunDeeds {
 public:
  // `access` outlives this.
  explicit RunDeeds(const Access& access) : access_(access) {}

  // Asks about the datasets, the newest whole checkpoint, if any, the checkpoint that the weights
  // start from, if the run reads it, the teacher, and the folder of checkpoints, which gets the
  // joined label of all that is read. Throws what reading a dataset's manifest and find_step()
  // throw.
  void ask_for(const RunConfig& config);
  const std::vector<CheckedDeed>& deeds() const { return deeds_; }
  bool is_allowed() const;

 private:
  void read_dataset(const std::string& key, const std::filesystem::path& folder);
  // Returns whether the folder has a whole step.
  bool read_newest_step(const std::filesystem::path& folder);
  void read_step(const std::string& key, const std::filesystem::path& path);
  void ask(const std::string& what, Request request);

  const Access& access_;
  std::optional<Label> joined_;
  std::vector<CheckedDeed> deeds_;
};

}  // namespace trireme
