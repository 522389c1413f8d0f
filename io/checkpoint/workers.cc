#include "io/checkpoint/workers.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <vector>

#include <sched.h>

#include "src/base/thread_error.h"

namespace trireme {

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

void parallel_for(int threads, std::int64_t count, const std::function<void(std::int64_t)>& work) {
  std::atomic<std::int64_t> next = 0;
  std::mutex mutex;
  std::exception_ptr first;
  const auto run = [&] {
    for (std::int64_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex);
        first = first == nullptr ? std::current_exception() : first;
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> team;
    try {
      for (std::int64_t i = 1; i < std::min<std::int64_t>(threads, count); ++i) {
        team.emplace_back(run);
      }
    } catch (const std::system_error&) {
      // No more threads can be started: those that run do the work.
    }
    run();
  }
  if (first != nullptr) {
    std::rethrow_exception(first);
  }
}

void BackgroundJob::start(std::function<void()> work) {
  wait();
  state_ = State::running;
  try {
    thread_ = std::thread([this, work = std::move(work)] {
      try {
        work();
        state_.store(State::succeeded, std::memory_order_release);
      } catch (const std::bad_alloc&) {
        error_ = "out of memory";
        state_.store(State::failed, std::memory_order_release);
      } catch (const std::exception& e) {
        error_ = e.what();
        state_.store(State::failed, std::memory_order_release);
      }
    });
  } catch (const std::system_error& e) {
    fail(no_thread("", e));
  }
}

void BackgroundJob::succeed() {
  wait();
  state_ = State::succeeded;
}

void BackgroundJob::fail(const std::string& error) {
  wait();
  error_ = error;
  state_ = State::failed;
}

bool BackgroundJob::wait_for(std::chrono::duration<double> limit) {
  const auto start = std::chrono::steady_clock::now();
  while (state() == State::running) {
    if (std::chrono::steady_clock::now() - start >= limit) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  wait();
  return true;
}

void BackgroundJob::wait() {
  if (thread_.joinable()) {
    thread_.join();
  }
}

}  // namespace trireme
