#include "src/evidence/worker_threads.h"

#include <system_error>
#include <thread>
#include <vector>

namespace trireme {

void work_in_threads(int threads, const std::function<void()>& work) {
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) {
    try {
      others.emplace_back(work);
    } catch (const std::system_error&) {
      break;
    }
  }
  work();
  for (std::thread& thread : others) {
    thread.join();
  }
}

}  // namespace trireme
