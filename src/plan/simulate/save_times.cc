#include "src/plan/simulate/save_times.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr double kLongestSave = 1e7;  // seconds, as checkpoint.disk_seconds allows

double time_field(const nlohmann::json& event, const char* name, double unit) {
  const nlohmann::json& value = field(event, name);
  const double seconds = value.is_number() ? unit * value.get<double>() : -1;
  if (!(seconds >= 0 && seconds <= kLongestSave)) {
    throw DataError(fmt::format("{} is not a time", name));
  }
  return seconds;
}

class PlaceReader {
 public:
  explicit PlaceReader(SaveTimes::Place& place) : place_(place) {}

  void add(const nlohmann::json& event) {
    const double seconds = time_field(event, "seconds", 1);
    const double stall = time_field(event, "stall_ms", 1e-3);
    const std::int64_t step = count_field(event, "step");
    const auto saves = static_cast<double>(++place_.saves);
    place_.seconds += (seconds - place_.seconds) / saves;
    place_.stall_seconds += (stall - place_.stall_seconds) / saves;
    if (last_ >= 0 && step > last_) {  // not after a fault
      const auto gap = static_cast<double>(step - last_);
      place_.steps += (gap - place_.steps) / ++gaps_;
    }
    last_ = step;
  }

 private:
  SaveTimes::Place& place_;
  std::int64_t last_ = -1;
  double gaps_ = 0;
};

std::string line_of(const char* what, const SaveTimes::Place& place, const char* key,
                    double assumed) {
  return place.saves == 0
             ? fmt::format(
                   "the run's log tells of no save {}: {} is assumed to be {:.4g} s, "
                   "unless you give it",
                   what, key, assumed)
             : fmt::format(
                   "{} {} in the run took {:.3g} s on average and stopped training for {:.3g} s",
                   counted(place.saves, "save"), what, place.seconds, place.stall_seconds);
}

}  // namespace

JobModel::Checkpoint SaveTimes::observed_settings() const {
  JobModel::Checkpoint settings;
  const auto steps = [](const Place& place) {
    return place.steps > 0 ? IntegerOrWord{std::llround(place.steps), ""}
                           : IntegerOrWord{0, "auto"};
  };
  settings.every = steps(disk);
  if (disk.saves > 0) {
    settings.memory_every = memory.saves > 0 ? steps(memory) : IntegerOrWord{0, ""};
  }
  return settings;
}

void SaveTimes::add_log(std::string_view log) {
  PlaceReader on_disk(disk);
  PlaceReader in_memory(memory);
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    if (line.find("checkpoint\"") == std::string_view::npos) {
      continue;
    }
    try {
      const nlohmann::json event = parse_json(line);
      const std::string& name = text_field(event, "event");
      if (name == "checkpoint") {
        on_disk.add(event);
      } else if (name == "memory_checkpoint") {
        in_memory.add(event);
      }
    } catch (const DataError&) {
      continue;  // not a save's event, or damaged
    }
  }
}

std::vector<std::string> use_save_times(const SaveTimes& times, JobModel::Checkpoint& checkpoint) {
  std::vector<std::string> lines;
  const bool to_disk = checkpoint.every.is("auto") || checkpoint.every.integer > 0;
  const bool to_memory = checkpoint.memory_every.is("auto") || checkpoint.memory_every.integer > 0;
  if (to_disk) {
    lines.push_back(
        line_of("on disk", times.disk, "checkpoint.disk_seconds", checkpoint.disk_seconds));
  }
  if (to_memory) {
    lines.push_back(
        line_of("in memory", times.memory, "checkpoint.memory_seconds", checkpoint.memory_seconds));
  }
  if (times.disk.saves > 0) {
    checkpoint.disk_seconds = times.disk.seconds;
  }
  if (times.memory.saves > 0) {
    checkpoint.memory_seconds = times.memory.seconds;
  }
  // With an automatic interval, the journal does not tell how many saves there were, and so not
  // what each cost.
  const SaveTimes::Place& often = to_memory ? times.memory : times.disk;
  const IntegerOrWord& interval = to_memory ? checkpoint.memory_every : checkpoint.every;
  if (interval.is("auto") && often.saves > 0) {
    checkpoint.stall = often.stall_seconds;
  }
  return lines;
}

}  // namespace trireme
