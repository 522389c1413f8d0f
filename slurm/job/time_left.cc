#include "slurm/job/time_left.h"

#include <array>
#include <charconv>
#include <ctime>

#include "src/base/command.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::chrono::seconds kSqueuePatience{10};
// Limit for each part (days, hours, ...), so that no sum overflows.
constexpr std::int64_t kMostPart = 1'000'000;

// Removes the number at the front of `text` and returns it.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0 || value > kMostPart || text.front() == '-') {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return value;
}

bool take(std::string_view& text, char c) {
  const bool there = !text.empty() && text.front() == c;
  text.remove_prefix(there ? 1 : 0);
  return there;
}

}  // namespace

std::optional<std::chrono::seconds> parse_slurm_time(std::string_view text) {
  std::int64_t days = 0;
  std::optional<std::int64_t> part = take_number(text);
  const bool with_days = part && take(text, '-');
  if (with_days) {
    days = *part;
    part = take_number(text);
  }
  std::array<std::int64_t, 3> parts{};
  std::size_t count = 0;
  constexpr std::int64_t kMostMinutes = 59;  // and seconds, behind a larger unit
  while (part && count < parts.size() && (*part <= kMostMinutes || count == 0)) {
    parts[count++] = *part;
    if (text.empty()) {
      // After days, the first part is hours. Without days it is minutes, unless there are three
      // parts.
      const bool hours_first = with_days || count == 3;
      const std::int64_t clock = 3600 * parts[0] + 60 * parts[1] + parts[2];
      return std::chrono::seconds(86400 * days + (hours_first ? clock : 60 * parts[0] + parts[1]));
    }
    part = take(text, ':') ? take_number(text) : std::nullopt;
  }
  return std::nullopt;
}

TimeLeft time_left(const SlurmJob& job) {
  if (job.end_seconds) {
    return {std::chrono::seconds(*job.end_seconds - std::time(nullptr)), ""};
  }
  const CommandResult squeue = run_command(
      {"squeue", "--noheader", "--jobs", job.command_id, "--format", "%L"}, kSqueuePatience);
  if (!squeue.good()) {
    return {std::nullopt, squeue.complaint("squeue")};
  }
  std::string text = squeue.output.substr(0, squeue.output.find('\n'));
  text.erase(0, text.find_first_not_of(' '));
  const std::optional<std::chrono::seconds> left = parse_slurm_time(text);
  const bool limited = text != "UNLIMITED" && text != "NOT_SET";
  return {left, left || !limited ? "" : fmt::format("squeue printed '{}'", text.substr(0, 40))};
}

}  // namespace trireme
