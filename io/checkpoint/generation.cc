#include "io/checkpoint/generation.h"

#include <charconv>

#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/file_kind.h"

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

// Throws DataError if the text is not just a number. One that overflows counts as kMostGeneration.
std::int64_t parse_generation(std::string text, const fs::path& file) {
  if (text.ends_with('\n')) {
    text.pop_back();
  }
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) {
    throw DataError(fmt::format("{} does not hold just a number", file.string()));
  }
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() ? value : kMostGeneration;
}

// Returns 0 if the file is missing, damaged or none. Describes that in `warning`.
std::int64_t recorded_generation(const fs::path& file, std::string& warning) {
  constexpr std::string_view kReplaced =
      "the run has replaced it by the number that follows from the checkpoints";
  if (const std::string other = other_than_file(file); !other.empty()) {
    warning = fmt::format("{} is {} and no regular file; {}", file.string(), other, kReplaced);
    return 0;
  }
  try {
    return read_generation(file).value_or(0);
  } catch (const DataError& error) {
    warning = fmt::format("{}: the file is damaged or was written by another program; {}",
                          error.what(), kReplaced);
    return 0;
  }
}

}  // namespace

std::optional<std::int64_t> read_generation(const fs::path& file) {
  try {
    return parse_generation(read_file(file, 64), file);
  } catch (const NotFound&) {
    return std::nullopt;
  }
}

Generation next_generation(const fs::path& folder) {
  const fs::path file = folder / kGenerationName;
  const std::string other = other_than_file(file);
  if (other == "a folder") {
    throw PolicyError(
        fmt::format("{} is a folder, where the starts of a run count themselves in a regular file: "
                    "remove it, then start again",
                    file.string()));
  }
  Largest largest;
  Generation next;
  largest.take(recorded_generation(file, next.warning), file);
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
  next.number = largest.generation + 1;
  if (const std::int64_t left = kMostGeneration - next.number; left < kFewGenerations) {
    next.warning = fmt::format(
        "{} claims that {} runs have written to {}: it is damaged or was planted, and only {} more "
        "starts are possible. Stop this run before it saves, remove it or move it out of the "
        "folder, then start again",
        largest.source.string(), largest.generation, folder.string(), left);
  }
  if (other == "a symbolic link") {
    std::error_code ignored;
    fs::remove(file, ignored);
  }
  write_file_durably(file, fmt::format("{}\n", next.number));
  return next;
}

}  // namespace trireme
