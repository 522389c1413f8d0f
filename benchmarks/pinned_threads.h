// Runs threads that are pinned to one processor each, and tells which processors there are.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

namespace trireme {

struct PinnedCore {
  int cpu = 0;        // the operating system's number of a hardware thread of the core
  int numa_node = 0;  // 0 if the system does not tell
};

// Returns one hardware thread of each core that the calling thread may run on, sorted by number.
// root: the folder that contains sys.
std::vector<PinnedCore> pinned_cores(const std::filesystem::path& root = "/");
// Does the same for processors that the caller may use.
std::vector<PinnedCore> pinned_cores(const std::vector<int>& allowed,
                                     const std::filesystem::path& root);

// Calls work(i) on a thread pinned to cores[i], for all i at once: no call begins before all
// threads run. Returns the seconds from the first begin to the last end. Throws ResourceError if a
// thread cannot be pinned, and rethrows what a call throws.
double run_pinned(const std::vector<PinnedCore>& cores,
                  const std::function<void(std::size_t)>& work);

}  // namespace trireme
