#include "slurm/render/measured_times.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

// Size of the part at the end of a file that is read: thousands of lines.
constexpr std::int64_t kBytes = 1 << 20;

// Returns the end of a file of a run that encrypts its files; "" if no key opens it, or there is
// none.
std::string end_of_sealed(const std::filesystem::path& path, const TextReader& reader) {
  try {
    const std::string text = reader.read(path);
    return text.substr(text.size() - std::min(text.size(), static_cast<std::size_t>(kBytes)));
  } catch (const PolicyError&) {
    return "";
  } catch (const NotFound&) {
    return "";
  }
}

std::string end_of(const std::filesystem::path& path, const TextReader& reader) {
  if (is_sealed_file(path) || !run_with_log_keys(path).empty()) {
    return end_of_sealed(path, reader);
  }
  try {
    const File file = File::open_to_read(path);
    const std::int64_t bytes = std::min(file.size(), kBytes);
    std::string text(static_cast<std::size_t>(bytes), '\0');
    text.resize(static_cast<std::size_t>(file.read_at(file.size() - bytes, text.data(), bytes)));
    return text;
  } catch (const NotFound&) {
    return "";
  }
}

using Value = std::function<std::optional<double>(const nlohmann::json&)>;

std::optional<double> longest(const std::filesystem::path& path, const TextReader& reader,
                              const Value& value) {
  const std::string text = end_of(path, reader);
  std::optional<double> most;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const auto line =
        nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(at),
                              text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (line.is_object()) {
      const std::optional<double> found = value(line);
      if (found && std::isfinite(*found) && *found >= 0) {
        most = std::max(most.value_or(0), *found);
      }
    }
    at = end + 1;
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
  if (const auto ms = longest(run_dir / "metrics.jsonl", reader, [](const nlohmann::json& line) {
        return number_of(line, "step_ms");
      })) {
    times.step_seconds = *ms / 1e3;
  }
  times.save_seconds =
      longest(run_dir / "logs" / "rank-00000.jsonl", reader, [](const nlohmann::json& line) {
        const auto event = line.find("event");
        const bool saved = event != line.end() && *event == "checkpoint";
        return saved ? number_of(line, "seconds") : std::nullopt;
      });
  return times;
}

}  // namespace trireme
