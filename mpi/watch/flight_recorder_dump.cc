// Writes the dump of a FlightRecorder:
//
//   {"event": "flight_recorder", "rank", "host", "pid", "time", "why", "phase", "phase_seconds",
//    "groups": [{"group", "id", "name", "ranks", "entered", "finished", "ended"}, ...]}
//   {"ticket", "group", "name", "operation", "number", "bytes", "dtype", "op", "root" or "peer",
//    "state", "queued", "started", "ended"}           one per line, newest last
//
// "group" numbers this rank's groups, and "id" is the same on all ranks of a group. Times are Unix
// seconds, or null if not reached. A null name belongs to a group that was forgotten.
#include <system_error>

#include <nlohmann/json.hpp>
#include <pthread.h>
#include <unistd.h>

#include "mpi/watch/flight_recorder.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

using nlohmann::json;

// Names of groups and hosts need not be valid UTF-8, so invalid bytes are replaced.
std::string line_of(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string file_name(int rank) { return fmt::format("flight-rank-{:05}.jsonl", rank); }

}  // namespace

std::string FlightRecorder::dump_text(const std::string& why) const {
  const auto all = entries();
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  const auto unix_seconds = [this](std::int64_t steady_ns) -> json {
    const auto since = std::chrono::nanoseconds(steady_ns) - steady_start_.time_since_epoch();
    const auto time = start_.time_since_epoch() + since;
    return steady_ns == 0 ? json() : json(std::chrono::duration<double>(time).count());
  };
  json groups = json::array();
  for (const auto& [serial, group] : groups_) {
    groups.push_back({{"group", serial},
                      {"id", hex64(group->id)},
                      {"name", group->name},
                      {"ranks", compact_ranks(group->members)},
                      {"entered", group->entered.load()},
                      {"finished", group->finished.load()},
                      {"ended", group->ended.load()}});
  }
  std::string text =
      line_of({{"event", "flight_recorder"},
               {"rank", rank_},
               {"host", host_},
               {"pid", ::getpid()},
               {"time", unix_seconds(std::chrono::nanoseconds(now.time_since_epoch()).count())},
               {"why", why},
               {"phase", phase_},
               {"phase_seconds", std::chrono::duration<double>(now - phase_since_).count()},
               {"groups", std::move(groups)}});
  for (const FlightEntry& entry : all) {
    const auto group = groups_.find(entry.group);
    const OperationLabel& label = entry.label;
    text += line_of({{"ticket", entry.ticket},
                     {"group", entry.group},
                     {"name", group == groups_.end() ? json() : json(group->second->name)},
                     {"operation", name_of(label.kind)},
                     {"number", label.number},
                     {"bytes", label.bytes},
                     {"dtype", dtype_name(label.dtype)},
                     {"op", name_of(label.op)},
                     {is_collective(label.kind) ? "root" : "peer", label.root},
                     {"state", name_of(entry.state)},
                     {"queued", unix_seconds(entry.queued_ns)},
                     {"started", unix_seconds(entry.started_ns)},
                     {"ended", unix_seconds(entry.ended_ns)}});
  }
  return text;
}

std::string FlightRecorder::dump(const std::filesystem::path& path, const std::string& why) const {
  try {
    std::shared_ptr<const RunSealer> sealer;
    {
      const std::lock_guard lock(mutex_);
      sealer = sealer_;
    }
    write_run_file(path, dump_text(why), sealer.get());
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

void FlightRecorder::dump_in_background(std::string why) {
  const std::lock_guard lock(mutex_);
  if (folder_.empty() || dumping_) {
    return;
  }
  if (dumper_.joinable()) {
    dumper_.join();  // returns at once, because the thread is about to end
  }
  const auto write = [this, path = folder_ / file_name(rank_), reason = std::move(why)] {
    ::pthread_setname_np(::pthread_self(), "trireme-dump");
    (void)dump(path, reason);
    const std::lock_guard done(mutex_);
    dumping_ = false;
    changed_.notify_all();
  };
  try {
    dumping_ = true;
    dumper_ = std::thread(write);
  } catch (const std::system_error&) {  // out of threads, so there is no dump
    dumping_ = false;
  }
}

bool FlightRecorder::wait_for_dump(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return !dumping_; });
}

}  // namespace trireme
