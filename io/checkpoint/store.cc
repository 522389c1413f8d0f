#include "io/checkpoint/store.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <system_error>
#include <tuple>

#include <sys/stat.h>

#include "io/checkpoint/folder_entries.h"
#include "io/checkpoint/names.h"
#include "io/checkpoint/step_keys_file.h"
#include "src/base/digest.h"
#include "src/base/file.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Throws if a shard is missing, has the wrong size, or is not listed in the manifest.
void check_shards(const fs::path& folder, const Manifest& manifest) {
  std::set<std::string> listed;
  for (const StoredShard& shard : manifest.shards) {
    const std::int64_t bytes = File::open_to_read(folder / shard.file).size();
    if (bytes != shard.bytes) {
      throw DataError(fmt::format("{} has {} bytes, but its manifest says {}",
                                  (folder / shard.file).string(), bytes, shard.bytes));
    }
    listed.insert(shard.file);
  }
  for (const fs::path& path : folder_entries(folder)) {
    const std::string name = path.filename().string();
    if (name.starts_with("shard-") && !listed.contains(name)) {
      throw DataError(fmt::format("{} is not in the manifest", path.string()));
    }
  }
}

// Sets the manifest and its digest. Throws unless the step is whole and, if `step` is given, its
// manifest is of that step.
void read_whole_step(const fs::path& path, std::optional<std::int64_t> step, StepFolder& folder) {
  const fs::path file = path / kManifestName;
  const std::string text = read_file(file);
  Manifest manifest = parse_manifest(text, file.string());
  if (step && manifest.meta.step != *step) {
    throw DataError(fmt::format("{} belongs to step {}: the folder was copied or renamed",
                                file.string(), manifest.meta.step));
  }
  check_shards(path, manifest);
  if (!manifest.data_key.empty()) {
    (void)read_step_keys(path, manifest);
  }
  folder.manifest = std::move(manifest);
  folder.manifest_sha256 = sha256_hex(text);
}

auto sort_key(const StepFolder& step) {
  return std::tuple(step.manifest.has_value() ? 0 : 1,
                    step.manifest ? step.manifest->generation : 0, step.step);
}

}  // namespace

namespace {

// Returns whether runs write checkpoints to the folder, whatever its own name.
bool holds_steps(const fs::path& folder) {
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    const std::string name = at->path().filename().string();
    if (name == kGenerationName || name.starts_with("step-")) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool is_step_folder(const fs::path& path) {
  const fs::path clean = path.has_filename() ? path : path.parent_path();
  std::error_code ignored;
  return fs::exists(clean / kManifestName, ignored) ||
         (clean.filename().string().starts_with("step-") && !holds_steps(clean));
}

StepFolder inspect_step(const fs::path& path) {
  StepFolder folder;
  folder.path = path;
  std::error_code ignored;
  folder.pinned = fs::exists(path / kPinnedName, ignored);
  const std::string name = path.filename().string();
  const auto step = parse_step_folder_name(name);
  if (!step && name.starts_with("step-")) {
    folder.problem = fmt::format("{} is not a valid name for a step folder", path.string());
    return folder;
  }
  folder.step = step.value_or(0);
  try {
    read_whole_step(path, step, folder);
    folder.step = folder.manifest->meta.step;
  } catch (const PolicyError& e) {
    folder.problem = e.what();
    folder.unreadable = true;
  } catch (const Error& e) {
    folder.problem = e.what();
  }
  return folder;
}

void check_readable(const StepFolder& step) {
  if (step.unreadable) {
    throw PolicyError(
        fmt::format("{}. The checkpoint may be intact, so no other one is used instead: make {} "
                    "readable for this user, or move it away",
                    step.problem, step.path.string()));
  }
}

std::vector<StepFolder> list_steps(const fs::path& folder) {
  std::vector<StepFolder> steps;
  for (const fs::path& path : folder_entries(folder)) {
    if (path.filename().string().starts_with("step-")) {
      steps.push_back(inspect_step(path));
    }
  }
  std::sort(steps.begin(), steps.end(),
            [](const StepFolder& a, const StepFolder& b) { return sort_key(a) > sort_key(b); });
  return steps;
}

NotFound no_checkpoint_in(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) {
    return NotFound(fmt::format("{} does not exist", folder.string()));
  }
  const fs::path below = folder / "checkpoints";
  return NotFound(fmt::format(
      "{} holds no checkpoint (no step-* folder){}", folder.string(),
      fs::is_directory(below, ignored) ? fmt::format("; did you mean {}?", below.string()) : ""));
}

std::vector<StepFolder> find_steps(const fs::path& path, std::vector<std::string>& skipped) {
  const fs::path clean = path.has_filename() ? path : path.parent_path();
  std::error_code ignored;
  if (is_step_folder(clean)) {
    StepFolder step = inspect_step(clean);
    check_readable(step);
    if (!fs::exists(clean, ignored)) {
      throw NotFound(fmt::format("{} does not exist", clean.string()));
    }
    if (!step.manifest) {
      throw DataError(step.problem);
    }
    return {step};
  }
  std::vector<StepFolder> whole;
  skipped.clear();
  for (StepFolder& step : list_steps(clean)) {
    check_readable(step);
    if (step.manifest) {
      whole.push_back(std::move(step));
    } else {
      skipped.push_back(step.problem);
    }
  }
  if (whole.empty() && skipped.empty()) {
    throw no_checkpoint_in(clean);
  }
  if (whole.empty()) {
    throw no_valid_checkpoint_in(clean, skipped);
  }
  return whole;
}

StepFolder find_step(const fs::path& path, std::vector<std::string>& skipped) {
  StepFolder newest = find_steps(path, skipped).front();
  skipped = shortened(std::move(skipped), path);
  return newest;
}

DataError no_valid_checkpoint_in(const fs::path& folder, std::vector<std::string> problems) {
  std::string all = fmt::format("{} holds no valid checkpoint:", folder.string());
  for (const std::string& line : shortened(std::move(problems), folder)) {
    all += "\n  " + line;
  }
  return DataError(all);
}

std::string advice_on_damage(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  // An imported or pruned checkpoint is no step of a run, and has none beside it.
  const bool is_step = parse_step_folder_name(path.filename().string()).has_value();
  const std::vector<StepFolder> steps = is_step ? list_steps(folder) : std::vector<StepFolder>();
  const auto own = std::find_if(steps.begin(), steps.end(), [&](const StepFolder& step) {
    return step.path.filename() == path.filename();
  });
  const auto older = std::find_if(own, steps.end(), [&](const StepFolder& step) {
    return step.manifest && step.path.filename() != path.filename();
  });
  if (older != steps.end()) {
    return fmt::format("{} is older; 'trireme ckpt verify --all {}' shows which are intact",
                       older->path.string(), folder.string());
  }
  if (steps.size() > 1) {
    return fmt::format(
        "'trireme ckpt verify --all {}' shows which checkpoints are intact; name one by its own "
        "folder, {}/step-...",
        folder.string(), folder.string());
  }
  return fmt::format(
      "there is no other step beside {}: restore it from a copy, or make it again from its source",
      path.string());
}

std::vector<std::string> shortened(std::vector<std::string> problems, const fs::path& folder) {
  constexpr std::size_t kShown = 5;
  if (problems.size() > kShown + 1) {
    const std::size_t more = problems.size() - kShown;
    problems.resize(kShown);
    problems.push_back(fmt::format("{} more steps in {}; `trireme ckpt ls` lists all of them", more,
                                   folder.string()));
  }
  return problems;
}

}  // namespace trireme
