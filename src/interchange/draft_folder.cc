#include "src/interchange/draft_folder.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include "io/checkpoint/names.h"
#include "io/checkpoint/process.h"
#include "io/checkpoint/store.h"
#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/interruption.h"
#include "src/base/is_locked.h"
#include "src/base/log.h"
#include "src/base/thread_error.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Returns the names of this host's drafts without the process's number.
std::string name_before_pid(const fs::path& final) {
  return fmt::format(".{}.draft-{}-", final.filename().string(), host_name());
}

// The draft has the longest name.
void check_length(const fs::path& final) {
  constexpr std::size_t kMostNameBytes = NAME_MAX;
  const std::string name = final.filename().string();
  const std::size_t more =
      name_before_pid(final).size() + std::to_string(::getpid()).size() - name.size();
  if (name.size() + more > kMostNameBytes) {
    throw ConfigError(fmt::format(
        "--out {}: the folder's name has {} bytes, and can have {} at most, since it "
        "is {} bytes longer until the folder is complete: choose a shorter one",
        final.string(), name.size(), kMostNameBytes - std::min(more, kMostNameBytes), more));
  }
}

// final: absolute.
void check_in_no_checkpoint(const fs::path& final) {
  const fs::path inner = fs::weakly_canonical(final);
  for (fs::path above = inner.parent_path(); above != above.root_path();
       above = above.parent_path()) {
    if (fs::exists(above / kManifestName) && inspect_step(above).manifest) {
      throw ConfigError(
          fmt::format("--out {} lies in the checkpoint {}: choose a folder outside "
                      "of it",
                      final.string(), above.string()));
    }
  }
}

// The lock also tells of processes that this one does not see, such as those of other containers.
bool is_left_over(const fs::directory_entry& entry, std::string_view start) {
  const std::string name = entry.path().filename().string();
  if (!name.starts_with(start) || !fs::is_directory(entry.symlink_status())) {
    return false;
  }
  const char* const end = name.data() + name.size();
  std::int64_t pid = 0;
  const auto [stop, error] = std::from_chars(name.data() + start.size(), end, pid);
  return error == std::errc{} && stop == end && !process_start_time(pid) &&
         !is_locked(entry.path());
}

void remove_left_over(const fs::path& final) {
  const std::string start = name_before_pid(final);
  std::error_code code;
  for (fs::directory_iterator at(final.parent_path(), code), end; !code && at != end;
       at.increment(code)) {
    if (is_left_over(*at, start)) {
      std::error_code ignored;  // it may be another user's
      fs::remove_all(at->path(), ignored);
    }
  }
}

}  // namespace

// Removes the draft and ends the process if a signal comes. A handler may not remove files, and the
// thread that fills the draft computes for long, so that this is a thread of its own.
class DraftFolder::SignalWatch {
 public:
  explicit SignalWatch(fs::path draft) : draft_(std::move(draft)), thread_([this] { work(); }) {}
  ~SignalWatch() {
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      is_over_ = true;
    }
    over_.notify_one();
    thread_.join();
  }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  void work() {
    constexpr std::chrono::milliseconds kBetween{50};
    std::unique_lock<std::mutex> lock(mutex_);
    bool is_over = false;
    while (!is_over) {
      is_over = over_.wait_for(lock, kBetween, [this] { return is_over_; });
      if (const int number = interruption(); number != 0) {
        std::error_code ignored;
        fs::remove_all(draft_, ignored);
        fs::remove_all(draft_, ignored);  // with what was made in it meanwhile
        end_by_signal(number);
      }
    }
  }

  NotedSignals noted_;
  fs::path draft_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;  // the last member: it uses the others
};

DraftFolder::DraftFolder(Communicator& world, fs::path final)
    : rank_(world.rank()), final_(final.has_filename() ? std::move(final) : final.parent_path()) {
  try {
    draft_ = run_on_root(world, [&] {
      begin(fs::absolute(final_));
      return draft_.string();
    });
  } catch (...) {
    remove();  // the destructor does not run
    throw;
  }
}

void check_outside(const fs::path& out, const fs::path& source, std::string_view does) {
  const fs::path inner = fs::weakly_canonical(fs::absolute(out));
  fs::path outer = fs::weakly_canonical(fs::absolute(source));
  if (!outer.has_filename()) {  // it was given with a slash at its end
    outer = outer.parent_path();
  }
  const auto [end, ignored] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  if (end == outer.end()) {
    throw ConfigError(fmt::format("--out {} {} {}, which {}: choose a folder outside of it",
                                  out.string(), outer == inner ? "is the same as" : "lies in",
                                  source.string(), does));
  }
}

void DraftFolder::begin(const fs::path& absolute) {
  check_length(absolute);
  if (fs::exists(fs::symlink_status(absolute))) {
    throw PolicyError(
        fmt::format("--out {} exists: choose another name, or remove it first", final_.string()));
  }
  check_in_no_checkpoint(absolute);
  make_directories(absolute.parent_path());
  remove_left_over(absolute);
  const fs::path draft =
      absolute.parent_path() / (name_before_pid(absolute) + std::to_string(::getpid()));
  if (is_locked(draft)) {
    throw PolicyError(fmt::format("another process is writing {} in {}: choose another --out",
                                  final_.string(), draft.string()));
  }
  remove_tree(draft);
  make_directories(draft);
  draft_ = draft;
  lock_.reset(::open(draft.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock_) {
    (void)::flock(lock_.get(), LOCK_EX | LOCK_NB);  // not every file system has locks
  }
  try {
    watch_ = std::make_unique<SignalWatch>(draft);
  } catch (const std::system_error& error) {
    throw ResourceError(no_thread("to watch for signals", error));
  }
}

DraftFolder::~DraftFolder() { remove(); }

void DraftFolder::remove() {
  watch_.reset();
  if (rank_ == 0 && !draft_.empty()) {
    std::error_code ignored;
    fs::remove_all(draft_, ignored);
  }
}

void DraftFolder::keep() {
  watch_.reset();
  sync_directory(draft_);
  const fs::path absolute = fs::absolute(final_);
  const auto check_is_new = [&] {
    if (fs::exists(fs::symlink_status(absolute))) {
      throw PolicyError(fmt::format(
          "--out {} was made by another process meanwhile: choose another name", final_.string()));
    }
  };
  check_is_new();
  try {
    rename_durably(draft_, absolute);
  } catch (const IoError&) {
    check_is_new();  // it may have been made since
    throw;
  }
  draft_.clear();
}

void write_whole_file(const std::filesystem::path& path, const std::string& text) {
  File file = File::create_new(path);
  file.write(text.data(), std::ssize(text));
  file.sync();
  file.close();
}

void share_work(Communicator& world, std::int64_t count,
                const std::function<void(std::int64_t)>& work) {
  std::exception_ptr own;
  std::string fault;
  try {
    for (std::int64_t i = world.rank(); i < count; i += world.size()) {
      work(i);
    }
  } catch (const Error& error) {
    own = std::current_exception();
    fault = error.what();
  }
  const std::string faults = gather_faults(world, fault);
  if (own != nullptr) {
    std::rethrow_exception(own);
  }
  if (!faults.empty()) {
    throw DataError(faults);
  }
}

}  // namespace trireme
