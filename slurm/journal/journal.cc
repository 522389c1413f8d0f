#include "slurm/journal/journal.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "src/base/append_file.h"
#include "src/base/error.h"
#include "src/base/is_locked.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"
#include "src/base/terminal.h"

namespace trireme {
namespace {

double wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

constexpr std::size_t kMostWaiting = 100'000;
constexpr std::chrono::seconds kFarewell{10};

// Writes text to stderr, if possible in one write. What stderr does not accept is lost.
void report(std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(STDERR_FILENO, text.data(), text.size());
    if (done <= 0 && errno != EINTR) {
      return;
    }
    text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(done, 0)));
  }
}

// Appends lines to a file. The file is opened with the first line, as opening may block, too.
class LinesOf {
 public:
  explicit LinesOf(std::filesystem::path path) : path_(std::move(path)) {}

  void operator()(const std::string& line) {
    if (!is_open_) {
      is_open_ = true;
      open();
    }
    if (file_) {
      file_->append(line);
    }
  }

 private:
  void open() {
    try {
      make_directories(path_.parent_path());
      file_ = std::make_shared<AppendFile>(AppendFile::open_lines(path_));
    } catch (const Error&) {
      // The run itself reports what is wrong with its folder.
    }
  }

  std::filesystem::path path_;
  bool is_open_ = false;
  std::shared_ptr<AppendFile> file_;  // shared, since std::function requires a copyable object
};

// Returns whether the numbers of the object that the account uses are possible ones: times in
// seconds, numbers of steps, ranks or attempts. -1 stands for an unknown one.
bool has_possible(const nlohmann::json& object, std::initializer_list<const char*> names) {
  constexpr double kMost = 1e10;
  return std::all_of(names.begin(), names.end(), [&](const char* name) {
    const auto found = object.find(name);
    return found == object.end() || !found->is_number() ||
           (found->get<double>() >= -1 && found->get<double>() <= kMost);
  });
}

bool has_possible_numbers(const nlohmann::json& event) {
  if (!has_possible(event, {"time", "clock", attempt_key(event), "ranks", "after_launch",
                            "launched", "detected"})) {
    return false;
  }
  const auto rank = event.find("rank0");
  if (rank == event.end() || !rank->is_object()) {
    return true;
  }
  const auto spent = rank->find("spent");
  if (spent != rank->end() && spent->is_object()) {
    for (const auto& [phase, seconds] : spent->items()) {
      if (!has_possible(*spent, {phase.c_str()})) {
        return false;
      }
    }
  }
  return has_possible(*rank, {"begun_at", "step", "age", "seen"});
}

}  // namespace

// A queue of lines for one destination, and the thread that writes them.
class Journal::Lane {
 public:
  using Writer = std::function<void(const std::string& line)>;

  static std::shared_ptr<Lane> open(Writer writer) {
    auto lane = std::make_shared<Lane>();
    // Block signals in this thread, so that other threads handle them.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([lane, writer = std::move(writer)] { lane->work(writer); }).detach();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return lane;
  }

  void put(std::string line) {
    const std::lock_guard lock(mutex_);
    if (lines_.size() < kMostWaiting) {
      lines_.push_back(std::move(line));
      changed_.notify_all();
    }
  }
  // Announces that no further line follows.
  void end() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  // Returns whether all lines have been written by the time `when`.
  bool wait_until(std::chrono::steady_clock::time_point when) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, when, [this] { return idle_; });
  }

 private:
  void work(const Writer& writer) {
    std::unique_lock lock(mutex_);
    while (!over_ || !lines_.empty()) {
      changed_.wait(lock, [this] { return over_ || !lines_.empty(); });
      const std::deque<std::string> lines = std::exchange(lines_, {});
      lock.unlock();
      for (const std::string& line : lines) {
        writer(line);
      }
      lock.lock();
    }
    idle_ = true;
    changed_.notify_all();
  }

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  bool over_ = false;
  bool idle_ = false;  // whether the thread has written everything and is about to end
};

Journal::Journal(const std::filesystem::path& path, std::string launch)
    : launch_(std::move(launch)),
      file_(Lane::open(LinesOf(path))),
      people_(Lane::open([](const std::string& line) { report(line); })) {}

Journal::~Journal() {
  const auto end = std::chrono::steady_clock::now() + kFarewell;
  for (const auto& lane : {file_, people_}) {
    lane->end();
  }
  for (const auto& lane : {file_, people_}) {
    (void)lane->wait_until(end);
  }
}

void Journal::say(std::string_view text) {
  people_->put(fmt::format("{}{}\n", line_start(), printable_lines(text)));
}

void Journal::write(std::string_view event, nlohmann::json fields, double clock) {
  nlohmann::json line = {
      {"time", wall_clock()}, {"clock", clock}, {"launch", launch_}, {"event", event}};
  line.update(fields);
  file_->put(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

bool is_journal_line(const nlohmann::json& object) {
  const auto field = [&](const char* name) { return object.value(name, nlohmann::json()); };
  return field("event").is_string() && field("launch").is_string() && field("time").is_number() &&
         field("clock").is_number() && has_possible_numbers(object);
}

RunStanding standing_of(const std::filesystem::path& run) {
  if (is_locked(run / ".launch.lock")) {
    return RunStanding::running;
  }
  std::error_code unknown;
  return std::filesystem::exists(run / "DONE", unknown) ? RunStanding::done : RunStanding::ended;
}

std::vector<nlohmann::json> parse_journal(std::string_view text, DamagedLines& damaged) {
  std::vector<nlohmann::json> events;
  damaged = use_lines(text, [&](std::string_view line) {
    try {
      nlohmann::json event = parse_json(line);
      const bool is_event = event.is_object() && is_journal_line(event);
      if (is_event) {
        events.push_back(std::move(event));
      }
      return is_event;
    } catch (const DataError&) {
      return false;
    }
  });
  return events;
}

}  // namespace trireme
