#include "io/checkpoint/generation.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "src/base/file.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Nothing if there is no such file, or not a number in it.
std::optional<std::int64_t> recorded_generation(const fs::path& folder) {
  try {
    const std::string text = read_file(folder / kGenerationName, 64);
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool ok = code == std::errc() && value >= 0 && std::string_view(end) == "\n";
    return ok ? std::optional(value) : std::nullopt;
  } catch (const DataError&) {
    return std::nullopt;
  } catch (const NotFound&) {
    return std::nullopt;
  }
}

}  // namespace

std::int64_t next_generation(const fs::path& folder) {
  const std::optional<std::int64_t> recorded = recorded_generation(folder);
  std::int64_t largest = recorded.value_or(0);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (const auto name = parse_transient_name(entry.path().filename().string())) {
      largest = std::max(largest, name->generation);
    }
  }
  for (const StepFolder& step : list_steps(folder)) {
    if (step.manifest) {
      largest = std::max(largest, step.manifest->generation);
    }
  }
  write_file_durably(folder / kGenerationName, fmt::format("{}\n", largest + 1));
  return largest + 1;
}

}  // namespace trireme
