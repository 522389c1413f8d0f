#include "benchmarks/scratch_folders.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <string>
#include <system_error>

#include <fmt/core.h>
#include <unistd.h>

#include "mpi/launch_environment.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/thread_error.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kBetweenLooks{50};
// Ranks that the signal has not reached yet may go on to write for a moment.
constexpr std::chrono::milliseconds kAfterglow{100};
constexpr int kMostTries = 20;
// How long another thread may take to end the process.
constexpr std::chrono::seconds kPatienceWithAnother{20};

// The process's only ScratchFolders, for remove_before_exit(); and another rank's folder, which a
// destroyed object left to remove_abandoned().
std::mutex present_mutex;
ScratchFolders* present = nullptr;
fs::path abandoned;
std::atomic<bool> removed{false};
std::atomic<bool> another_ends{false};

const pid_t parent_at_start = ::getppid();

// Returns whether mpirun has started this process and is gone: it was killed, or has got a second
// signal before it passed the first one on. MPI then ends the process within about a second,
// without running destructors.
bool has_lost_mpirun() {
  static const bool has_mpirun = process_environment()("OMPI_COMM_WORLD_RANK").has_value();
  return has_mpirun && ::getppid() != parent_at_start;
}

// Returns the signal by which the process has to end, or 0.
int signal_to_end_by() {
  const int number = interruption();
  return number == 0 && has_lost_mpirun() ? SIGTERM : number;
}

fs::path aside(const fs::path& folder) { return folder.string() + ".removed"; }

bool is_gone(const fs::path& folder) {
  std::error_code ignored;
  return !fs::exists(folder, ignored) && !fs::exists(aside(folder), ignored);
}

// Threads that still write would fill the folder as fast as it is emptied. Under another name, they
// do not find it.
void remove_folder(const fs::path& folder) {
  std::error_code ignored;
  fs::rename(folder, aside(folder), ignored);
  fs::remove_all(aside(folder), ignored);
  fs::remove_all(folder, ignored);
}

// Runs `remove` on a thread of its own, and waits for its end.
template <class Remove>
void remove_within(std::chrono::duration<double> patience, Remove remove) {
  try {
    std::thread([remove] {
      remove();
      removed = true;
    }).detach();
  } catch (const std::system_error&) {  // no more threads
    remove();
    return;
  }
  const auto last = std::chrono::steady_clock::now() + patience;
  while (!removed && std::chrono::steady_clock::now() < last) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

[[noreturn]] void end_process(int signal_number) {
  if (another_ends) {
    std::this_thread::sleep_for(kPatienceWithAnother);
  }
  end_by_signal(signal_number);
}

}  // namespace

ScratchFolders::ScratchFolders() : uncaught_at_start_(std::uncaught_exceptions()) {
  try {
    thread_ = std::thread([this] { wait_for_signal(); });
  } catch (const std::system_error& error) {
    throw ResourceError(no_thread("to receive signals", error));
  }
  const std::lock_guard lock(present_mutex);
  present = this;
}

ScratchFolders::~ScratchFolders() {
  {
    const std::lock_guard lock(present_mutex);
    present = nullptr;
    if (std::uncaught_exceptions() > uncaught_at_start_) {
      abandoned = awaited_;
    }
  }
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  // If a signal has come, this waits until it ends the process: what threads report about files
  // that are gone is of no use to anybody.
  thread_.join();
  (void)remove_all();
  if (interruption() != 0) {  // after the thread's last look
    end_process(interruption());
  }
}

std::filesystem::path ScratchFolders::make(const fs::path& within) {
  if (!fs::is_directory(within)) {
    throw NotFound(fmt::format(
        "{} is not a folder: name a folder on the disk that is to be measured", within.string()));
  }
  std::string path = (fs::absolute(within) / "trireme-bench-XXXXXX").lexically_normal();
  const std::lock_guard lock(mutex_);
  if (::mkdtemp(path.data()) == nullptr) {
    throw_errno(errno, "create a folder in", within);
  }
  return folders_.emplace_back(path);
}

void ScratchFolders::adopt(const fs::path& folder) {
  const std::lock_guard lock(mutex_);
  folders_.push_back(folder);
}

void ScratchFolders::await(const fs::path& folder) {
  const std::lock_guard lock(mutex_);
  awaited_ = folder;
}

bool ScratchFolders::remove_all() {
  const std::lock_guard lock(mutex_);
  bool gone = true;
  for (const fs::path& folder : folders_) {
    remove_folder(folder);
    gone = gone && is_gone(folder);
  }
  return gone && (awaited_.empty() || is_gone(awaited_));
}

void ScratchFolders::wait_for_signal() {
  {
    std::unique_lock lock(mutex_);
    while (!is_over_ && signal_to_end_by() == 0) {
      changed_.wait_for(lock, kBetweenLooks);
    }
  }
  const int number = signal_to_end_by();
  if (number == 0) {
    return;
  }
  for (int i = 0; i < kMostTries && (!remove_all() || i == 0); ++i) {
    std::this_thread::sleep_for(kAfterglow);
  }
  (void)remove_all();
  end_process(number);
}

void ScratchFolders::leave_end_to_another(bool is_so) { another_ends = is_so; }

void ScratchFolders::remove_before_exit(std::chrono::duration<double> patience) {
  present_mutex.lock();  // never unlocked: keeps the object alive while the thread runs
  if (present != nullptr) {
    remove_within(patience, [folders = present] { (void)folders->remove_all(); });
  }
}

void ScratchFolders::remove_abandoned(std::chrono::duration<double> patience) {
  fs::path folder;
  {
    const std::lock_guard lock(present_mutex);
    folder.swap(abandoned);
  }
  if (!folder.empty()) {
    remove_within(patience, [folder] {
      for (int i = 0; i < kMostTries && (!is_gone(folder) || i == 0); ++i) {
        remove_folder(folder);
        std::this_thread::sleep_for(kAfterglow);
      }
    });
  }
}

}  // namespace trireme
