// Tells a test that other threads of its process wait, from how often they went to sleep.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <unistd.h>

namespace trireme {

// Returns how often the other threads of this process have gone to sleep so far.
inline std::int64_t sleeps_of_others() {
  std::int64_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    if (entry.path().filename() == std::to_string(::gettid())) {
      continue;
    }
    std::ifstream file(entry.path() / "status");
    for (std::string word; file >> word;) {
      std::int64_t own = 0;
      if (word == "voluntary_ctxt_switches:" && file >> own) {
        count += own;
      }
    }
  }
  return count;
}

// Returns after other threads have gone to sleep `times` times more, as one does that looks again
// and again whether it may go on. The caller's test guarantees that there is such a thread.
inline void wait_for_sleeps(int times) {
  for (const std::int64_t end = sleeps_of_others() + times; sleeps_of_others() < end;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace trireme
