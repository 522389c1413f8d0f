#include "benchmarks/pinned_threads.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <latch>
#include <set>
#include <string>
#include <thread>

#include <fmt/core.h>
#include <pthread.h>
#include <sched.h>

#include "benchmarks/busy_watch.h"
#include "mpi/topology.h"
#include "src/base/clock.h"
#include "src/base/error.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

std::string list_in(const fs::path& path) {
  std::ifstream file(path);
  std::string list;
  std::getline(file, list);
  return list;
}

int node_of(int cpu, const fs::path& root) {
  std::error_code none;
  const fs::path folder = root / "sys/devices/system/cpu" / fmt::format("cpu{}", cpu);
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("node") && name.size() > 4) {
      return std::atoi(name.c_str() + 4);
    }
  }
  return 0;
}

void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (const int code = ::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set); code != 0) {
    throw ResourceError(
        fmt::format("cannot pin a thread to processor {}: {}", cpu, std::strerror(code)));
  }
}

struct PinnedTimes {
  double begin = 0;
  double end = 0;
  std::exception_ptr failure;
};

}  // namespace

std::vector<PinnedCore> pinned_cores(const std::vector<int>& allowed, const fs::path& root) {
  std::vector<PinnedCore> cores;
  std::set<int> taken;
  for (const int cpu : allowed) {
    if (taken.contains(cpu)) {
      continue;
    }
    cores.push_back({cpu, node_of(cpu, root)});
    const fs::path siblings = root / "sys/devices/system/cpu" / fmt::format("cpu{}", cpu) /
                              "topology/thread_siblings_list";
    for (const int sibling : numbers_in(list_in(siblings))) {
      taken.insert(sibling);
    }
  }
  return cores;
}

std::vector<PinnedCore> pinned_cores(const fs::path& root) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) {
    throw ResourceError(
        fmt::format("cannot find out the processors of this process: {}", std::strerror(errno)));
  }
  std::vector<int> allowed;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) {
      allowed.push_back(cpu);
    }
  }
  return pinned_cores(allowed, root);
}

double run_pinned(const std::vector<PinnedCore>& cores,
                  const std::function<void(std::size_t)>& work) {
  std::vector<PinnedTimes> times(cores.size());
  std::latch all_run(static_cast<std::ptrdiff_t>(cores.size()));
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < cores.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          pin_to(cores[i].cpu);
        } catch (...) {
          times[i].failure = std::current_exception();
        }
        all_run.arrive_and_wait();
        times[i].begin = steady_seconds();
        if (times[i].failure == nullptr) {
          try {
            work(i);
          } catch (...) {
            times[i].failure = std::current_exception();
          }
        }
        times[i].end = steady_seconds();
        count_ending_thread();
      });
    }
  }
  double begin = times.front().begin;
  double end = times.front().end;
  for (const PinnedTimes& each : times) {
    if (each.failure != nullptr) {
      std::rethrow_exception(each.failure);
    }
    begin = std::min(begin, each.begin);
    end = std::max(end, each.end);
  }
  return end - begin;
}

}  // namespace trireme
