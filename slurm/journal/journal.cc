#include "slurm/journal/journal.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "src/base/append_file.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace {

double wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

constexpr std::size_t kMostWaiting = 100'000;
constexpr std::chrono::seconds kFarewell{10};

struct Line {
  std::string text;
  bool for_people = false;
};

// To stderr: one write a line where it takes that; what it does not take is lost.
void tell(std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(STDERR_FILENO, text.data(), text.size());
    if (done <= 0 && errno != EINTR) {
      return;
    }
    text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(done, 0)));
  }
}

}  // namespace

struct Journal::Desk {
  std::optional<AppendFile> file;  // the thread's
  std::mutex mutex;                // guards what follows
  std::condition_variable changed;
  std::deque<Line> lines;
  bool over = false;
  bool idle = false;  // all is written, and the thread ends
};

Journal::Journal(const std::filesystem::path& path, std::string launch)
    : launch_(std::move(launch)), desk_(std::make_shared<Desk>()) {
  try {
    make_directories(path.parent_path());
    desk_->file = AppendFile::open_lines(path);
  } catch (const Error&) {
    // The run itself will say what is wrong with its folder.
  }
  std::thread([desk = desk_] { work(*desk); }).detach();
}

Journal::~Journal() {
  std::unique_lock lock(desk_->mutex);
  desk_->over = true;
  desk_->changed.notify_all();
  desk_->changed.wait_for(lock, kFarewell, [this] { return desk_->idle; });
}

void Journal::work(Desk& desk) {
  std::unique_lock lock(desk.mutex);
  while (!desk.over || !desk.lines.empty()) {
    desk.changed.wait(lock, [&] { return desk.over || !desk.lines.empty(); });
    std::deque<Line> lines = std::exchange(desk.lines, {});
    lock.unlock();
    for (const Line& line : lines) {
      if (line.for_people) {
        tell(line.text);
      } else if (desk.file) {
        desk.file->append(line.text);
      }
    }
    lock.lock();
  }
  desk.file.reset();
  desk.idle = true;
  desk.changed.notify_all();
}

void Journal::put(std::string line, bool for_people) {
  const std::lock_guard lock(desk_->mutex);
  if (desk_->lines.size() < kMostWaiting) {
    desk_->lines.push_back({std::move(line), for_people});
    desk_->changed.notify_all();
  }
}

bool Journal::has_file() const { return desk_->file.has_value(); }

void Journal::say(std::string_view text) { put(std::string(text) + "\n", true); }

void Journal::write(std::string_view event, nlohmann::json fields, double clock) {
  nlohmann::json line = {
      {"time", wall_clock()}, {"clock", clock}, {"launch", launch_}, {"event", event}};
  line.update(fields);
  put(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n", false);
}

std::vector<nlohmann::json> parse_journal(std::string_view text, std::int64_t& bad_lines) {
  std::vector<nlohmann::json> events;
  std::istringstream lines{std::string(text)};
  std::string line;
  while (std::getline(lines, line)) {
    try {
      nlohmann::json event = parse_json(line);
      (void)text_field(event, "event");
      (void)text_field(event, "launch");
      if (!field(event, "time").is_number() || !field(event, "clock").is_number()) {
        throw DataError("a journal's line without its times");
      }
      events.push_back(std::move(event));
    } catch (const DataError&) {
      ++bad_lines;
    }
  }
  return events;
}

}  // namespace trireme
