#include "src/train/start/run_place.h"

#include <algorithm>
#include <optional>
#include <regex>
#include <string_view>

#include "io/checkpoint/names.h"
#include "src/base/error.h"
#include "src/train/run/openmetrics_path.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Returns what a folder is if other runs or commands remove it or only read it, otherwise "".
std::string_view use_of(const fs::path& folder) {
  std::error_code none;
  const bool has_manifest = fs::exists(folder / kManifestName, none);
  // A name of a step is reserved even before the step is saved.
  if (parse_step_folder_name(folder.filename().string()) &&
      (has_manifest || fs::exists(folder.parent_path() / kGenerationName, none))) {
    return "a checkpoint";
  }
  return has_manifest && fs::exists(folder / "shards", none) ? "a dataset" : "";
}

struct UsedFolder {
  fs::path folder;
  std::string_view use;
};

// Returns the nearest folder, this or one above it, that is a dataset, a checkpoint or the like.
std::optional<UsedFolder> find_used_folder(const fs::path& from, bool beside_checkpoints) {
  std::error_code none;
  for (fs::path at = from; at.has_relative_path(); at = at.parent_path()) {
    std::string_view use = use_of(at);
    if (use.empty() && !beside_checkpoints && fs::exists(at / kGenerationName, none)) {
      use = "a folder of checkpoints";
    }
    if (!use.empty()) {
      return UsedFolder{at, use};
    }
  }
  return std::nullopt;
}

// Throws ConfigError if the folder or one above it has a use. key: what has named the folder.
void check_place(std::string_view key, const fs::path& named, const fs::path& from,
                 bool beside_checkpoints) {
  if (const std::optional<UsedFolder> used = find_used_folder(from, beside_checkpoints)) {
    throw ConfigError(fmt::format(
        "{}: {} lies in {}, which is {} and may be removed with everything in it: choose another "
        "path",
        key, named.string(), used->folder.string(), used->use));
  }
}

// What a run and `trireme launch` write in the run's folder (src/train/run/run_directory.h).
constexpr std::string_view kNamesInRun[] = {
    "config.yaml", "metrics.jsonl", "prediction.json",  "logs", "trace", "tensorboard",
    "checkpoints", "journal.jsonl", "exit_reason.json", "DONE", ".lock", ".launch.lock"};

bool is_folder_of_run(const fs::path& folder) {
  constexpr const char* kSigns[] = {"metrics.jsonl", "logs/rank-00000.jsonl", "journal.jsonl",
                                    "exit_reason.json", "DONE"};
  const auto has = [&](const char* each) {
    std::error_code none;
    return fs::exists(folder / each, none);
  };
  return has("config.yaml") && std::ranges::any_of(kSigns, has);
}

// Returns whether the folder is a run's, and whether the run writes what has this name in it.
bool is_written_by_run(const fs::path& folder, const fs::path& name) {
  return std::ranges::find(kNamesInRun, name.string()) != std::end(kNamesInRun) &&
         is_folder_of_run(folder);
}

bool is_written_by_checkpoints(const fs::path& folder, const fs::path& name) {
  std::error_code none;
  return fs::exists(folder / kGenerationName, none) &&
         (name == kGenerationName || name == kLatestName || name == kLockName);
}

constexpr const char* kStudyName = "study.json";

// Returns whether the folder is a scaling study's (src/app/study/scale_study.h), and whether the
// study writes the file with this name in it.
bool is_written_by_study(const fs::path& folder, const fs::path& name) {
  std::error_code none;
  return fs::exists(folder / kStudyName, none) &&
         (name == kStudyName || name == ".scale.lock" || name.extension() == ".job");
}

// Every acceptance leaves it in its folder, while anybody may have named a file acceptance.json.
constexpr const char* kAcceptLockName = ".accept.lock";

// Returns whether a file has the name of a measurement, such as n1-n2-l03-0.json
// (src/app/study/accept_runner.cc).
bool has_name_of_measurement(const fs::path& name) {
  static const std::regex pattern(R"(.+-[rlp]\d{2,}-\d+\.json)");
  return std::regex_match(name.string(), pattern);
}

// Returns whether the folder holds what an acceptance has measured, and whether the file with this
// name belongs to it. The acceptance's own benchmarks write new measurements.
bool is_written_by_acceptance(const fs::path& folder, const fs::path& name) {
  std::error_code none;
  return fs::exists(folder / kAcceptLockName, none) &&
         (name == "acceptance.json" || name == kAcceptLockName ||
          (has_name_of_measurement(name) && fs::exists(folder / name, none)));
}

// Returns what a run or a command writes into this file or folder, such as "belongs to the run in
// runs/first", otherwise "".
std::string owner_of(const fs::path& whole) {
  for (fs::path at = whole; at.has_relative_path(); at = at.parent_path()) {
    const fs::path folder = at.parent_path();
    const fs::path name = at.filename();
    const char* const owner = is_written_by_run(folder, name)           ? "run"
                              : is_written_by_checkpoints(folder, name) ? "checkpoints"
                              : is_written_by_study(folder, name)       ? "study"
                              : is_written_by_acceptance(folder, name)  ? "acceptance"
                                                                        : nullptr;
    if (owner != nullptr) {
      return fmt::format("belongs to the {} in {}", owner, folder.string());
    }
  }
  return "";
}

fs::path canonical_place(const fs::path& folder) {
  std::error_code none;
  const fs::path place = fs::weakly_canonical(fs::absolute(folder, none), none);
  return place.has_filename() ? place : place.parent_path();
}

std::string problem_with_folder(const fs::path& folder) {
  const fs::path whole = canonical_place(folder);
  if (const std::optional<UsedFolder> used = find_used_folder(whole, false)) {
    return used->folder == whole
               ? fmt::format("is {}", used->use)
               : fmt::format("lies in {}, which is {}", used->folder.string(), used->use);
  }
  return is_folder_of_run(whole) ? "is the folder of a run" : owner_of(whole);
}

}  // namespace

void check_place_of_run(const RunConfig& config) {
  const fs::path checkpoints = config.checkpoint_dir();
  check_place("run.dir", config.run_dir, canonical_place(config.run_dir), true);
  check_place("checkpoint.dir", checkpoints, canonical_place(checkpoints), true);
  if (!config.metrics.openmetrics.empty()) {
    const fs::path file = openmetrics_path(config);
    check_place("metrics.openmetrics", file, canonical_place(file).parent_path(), true);
    const fs::path from_checkpoints =
        canonical_place(file).lexically_relative(canonical_place(checkpoints));
    if (!from_checkpoints.empty() && *from_checkpoints.begin() != "..") {
      throw ConfigError(
          fmt::format("metrics.openmetrics: {} lies in the run's own folder of checkpoints, in "
                      "which `trireme verify` takes it for a file that somebody has added: choose "
                      "another folder",
                      file.string()));
    }
  }
}

void check_place_of_dataset(std::string_view option, const fs::path& folder) {
  check_place(option, folder, canonical_place(folder).parent_path(), false);
}

std::string problem_with_place_of_result(const fs::path& file) {
  const fs::path whole = canonical_place(file);
  if (const std::optional<UsedFolder> used = find_used_folder(whole.parent_path(), true)) {
    return fmt::format("lies in {}, which is {}", used->folder.string(), used->use);
  }
  return owner_of(whole);
}

std::string problem_with_place_of_study(const fs::path& folder) {
  std::error_code none;
  const std::string problem = problem_with_folder(folder);
  return problem.empty() && fs::exists(folder / kAcceptLockName, none)
             ? "is the folder of an acceptance"
             : problem;
}

std::string problem_with_place_of_acceptance(const fs::path& folder) {
  std::error_code none;
  const std::string problem = problem_with_folder(folder);
  return problem.empty() && fs::exists(folder / kStudyName, none) ? "is the folder of a study"
                                                                  : problem;
}

}  // namespace trireme
