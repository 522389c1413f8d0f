// ByteProgress shows how many bytes of a dataset a subcommand of `trireme data` has handled.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "src/base/progress_bar.h"

namespace trireme {

// Shows a progress bar on a terminal, and otherwise a line every ten seconds; on rank 0 only.
// Copies share the bar.
class ByteProgress {
 public:
  ByteProgress(std::string label, int rank) : label_(std::move(label)), shown_(rank == 0) {}
  void operator()(std::int64_t done, std::int64_t total);

 private:
  std::string label_;
  bool shown_;
  std::int64_t total_ = -1;
  std::shared_ptr<ProgressBar> bar_;
};

}  // namespace trireme
