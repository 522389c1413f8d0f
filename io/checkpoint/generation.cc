#include "io/checkpoint/generation.h"

#include <charconv>
#include <optional>

#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "src/base/file.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// The largest generation found so far, and the path that contains it.
struct Largest {
  std::int64_t generation = 0;
  fs::path source;

  void take(std::int64_t found, const fs::path& where) {
    if (found > generation) {
      generation = found;
      source = where;
    }
  }
};

// Returns nothing if the file is missing or does not contain a number. A number that overflows
// counts as kMostGeneration.
std::optional<std::int64_t> recorded_generation(const fs::path& folder) {
  try {
    const std::string text = read_file(folder / kGenerationName, 64);
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (std::string_view(end) != "\n" || text.starts_with('-')) {
      return std::nullopt;
    }
    return code == std::errc() ? value : kMostGeneration;
  } catch (const DataError&) {
    return std::nullopt;
  } catch (const NotFound&) {
    return std::nullopt;
  }
}

}  // namespace

std::int64_t next_generation(const fs::path& folder) {
  Largest largest;
  largest.take(recorded_generation(folder).value_or(0), folder / kGenerationName);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (const auto name = parse_transient_name(entry.path().filename().string())) {
      largest.take(name->generation, entry.path());
    }
  }
  for (const StepFolder& step : list_steps(folder)) {
    if (step.manifest) {
      largest.take(step.manifest->generation, step.path / kManifestName);
    }
  }
  if (largest.generation >= kMostGeneration) {
    throw DataError(fmt::format(
        "{} claims that at least {} runs have written to {}: it is damaged or was planted, and no "
        "run could save after it. Remove it or move it out of the folder, then start again",
        largest.source.string(), kMostGeneration, folder.string()));
  }
  write_file_durably(folder / kGenerationName, fmt::format("{}\n", largest.generation + 1));
  return largest.generation + 1;
}

}  // namespace trireme
