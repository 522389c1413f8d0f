#include "slurm/render/measured_times.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_lines.h"

namespace trireme {
namespace {

// Size of the part at the end of a file that is read: thousands of lines.
constexpr std::int64_t kBytes = 1 << 20;

// Returns the last lines of a file of a run; none if it is encrypted and no key opens it.
LastLines lines_of(const std::filesystem::path& path, const TextReader& reader,
                   ObjectTest is_expected = nullptr) {
  try {
    return last_json_lines(path, reader, kBytes, is_expected);
  } catch (const PolicyError&) {
    if (!is_sealed_file(path) && run_with_log_keys(path).empty()) {
      throw;  // the file may not be read
    }
    return {};
  } catch (const NotFound&) {
    return {};
  }
}

using Value = std::function<std::optional<double>(const nlohmann::json&)>;

std::optional<double> longest(const LastLines& lines, const Value& value) {
  std::optional<double> most;
  for (const nlohmann::json& line : lines.objects) {
    const std::optional<double> found = value(line);
    if (found && std::isfinite(*found) && *found >= 0) {
      most = std::max(most.value_or(0), *found);
    }
  }
  return most;
}

std::optional<double> number_of(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? std::optional(found->get<double>())
                                                     : std::nullopt;
}

}  // namespace

MeasuredTimes measured_times(const std::filesystem::path& run_dir, const TextReader& reader) {
  MeasuredTimes times;
  const LastLines metrics = lines_of(run_dir / "metrics.jsonl", reader, is_metrics_line);
  const LastLines log = lines_of(run_dir / "logs" / "rank-00000.jsonl", reader);
  if (const auto ms =
          longest(metrics, [](const nlohmann::json& line) { return number_of(line, "step_ms"); })) {
    times.step_seconds = *ms / 1e3;
  }
  times.save_seconds = longest(log, [](const nlohmann::json& line) {
    const auto event = line.find("event");
    const bool saved = event != line.end() && *event == "checkpoint";
    return saved ? number_of(line, "seconds") : std::nullopt;
  });
  times.damaged_metrics = metrics.damaged;
  times.damaged_log = log.damaged;
  return times;
}

}  // namespace trireme
