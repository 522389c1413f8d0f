// See lineage_walk.h.
#include <algorithm>
#include <cerrno>

#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "io/checkpoint/folder_entries.h"
#include "io/checkpoint/generation.h"
#include "io/checkpoint/names.h"
#include "io/checkpoint/step_keys_file.h"
#include "io/checkpoint/store.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/file_kind.h"
#include "src/base/units.h"
#include "src/lineage/energy_fact.h"
#include "src/lineage/lineage_walk.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Changes when another folder takes the name, or when something in the folder is added or removed.
struct FolderState {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  friend bool operator==(const FolderState&, const FolderState&) = default;
};

// Returns nothing if there is no such folder.
std::optional<FolderState> state_of(const fs::path& folder) {
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
    return std::nullopt;
  }
  return FolderState{status.st_dev, status.st_ino, status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
}

// Adds a fault for an encrypted step that nothing can open. keys.json is not signed, since the
// recipients may change.
void check_keys_of(const fs::path& step, FolderCheck& check) {
  try {
    const fs::path file = step / kManifestName;
    const std::string text = read_file(file);
    if (text.find("\"encryption\"") != std::string::npos) {
      (void)read_step_keys(step, parse_manifest(text, file.string()));
    }
  } catch (const Error& error) {
    check.faults.push_back({error.exit_code(), error.what()});
  }
}

}  // namespace

// Returns nothing if a live run has deleted the step, as its retention does, before all of it was
// checked. A step that has changed meanwhile is checked again: the run may have saved it anew.
std::optional<FolderCheck> LineageWalk::check_step(const fs::path& path) const {
  constexpr int kMostTries = 3;
  for (int tries = 1;; ++tries) {
    const std::optional<FolderState> before = state_of(path);
    if (!before) {
      return std::nullopt;
    }
    FolderCheck check =
        check_folder(path, {options_.trusted, options_.threads, {std::string(kPinnedName)}});
    if (check.faults.empty()) {
      check_keys_of(path, check);
    }
    const std::optional<FolderState> after = state_of(path);
    if (check.faults.empty() || after == before || (after && tries == kMostTries)) {
      return check;
    }
  }
}

// Reports what is in a folder of checkpoints and no step, unless a run writes it there.
void LineageWalk::stray(const fs::path& path) {
  const std::string name = path.filename().string();
  const fs::file_status status = fs::symlink_status(path);
  if (!fs::exists(status)) {
    return;  // what a live run writes or deletes may be gone by now
  }
  const auto transient = parse_transient_name(name);
  const bool is_own = name == kLatestName || name == kGenerationName || name == kLockName;
  if ((is_own && fs::is_regular_file(status)) || is_draft(path)) {
    return;
  }
  if (is_own) {
    add_fault(ExitCode::bad_data,
              fmt::format("{} is {}, where a run keeps a regular file: it was put there",
                          path.string(), other_than_file(path)));
  } else if (!transient || !fs::is_directory(status)) {
    add_fault(ExitCode::bad_data,
              fmt::format("{} was added: it is no step of this folder", path.string()));
  } else if (transient->kind == TransientName::Kind::replaced) {
    add_fault(ExitCode::refused,
              fmt::format("{} was left by an interrupted save, and the next start of the run may "
                          "make it step {}: it was not checked",
                          path.string(), transient->step));
  } else {
    lineage.notes.push_back(fmt::format(
        "{} is a save or a deletion that has not ended: it was not checked", path.string()));
  }
}

// Reports a step that was made for another folder of checkpoints, such as one of another run with
// the same number. The user may have moved a single step on purpose.
void LineageWalk::check_home(const fs::path& path, const Provenance& provenance) {
  const std::string stated = path_of_uri(detail_of(provenance, "checkpoints"));
  if (stated.empty()) {
    if (is_whole_folder_) {
      add_fault(ExitCode::refused,
                fmt::format("{}: its provenance does not say for which folder it was made, since "
                            "an older version has signed it: verify it by itself",
                            path.string()));
    }
    return;
  }
  const fs::path folder = path.parent_path();
  const fs::path now = place_now(stated);
  std::error_code code;
  if (fs::weakly_canonical(now, code) == fs::weakly_canonical(folder, code)) {
    return;
  }
  if (is_whole_folder_) {
    add_fault(ExitCode::bad_data,
              fmt::format("{} was made for {}: a step of another run was put here. If you have "
                          "moved or copied the run, say so: --moved {}={}",
                          path.string(), now.string(), stated, folder.string()));
  } else {
    lineage.notes.push_back(fmt::format("{} was made for {}", path.string(), now.string()));
  }
}

// Every start of a run writes GENERATION before it saves, so that only a copy may lack the file.
void LineageWalk::generation_is_gone(const fs::path& file, const Provenance& provenance) {
  const std::string stated = path_of_uri(detail_of(provenance, "checkpoints"));
  if (!is_whole_folder_ || stated.empty() || !seen_.insert("generation:" + file.string()).second) {
    return;
  }
  if (place_now(stated) == stated) {
    add_fault(
        ExitCode::not_found,
        fmt::format("{} is gone, in which each start of the run counts itself: whether a step "
                    "of a later start was put here was not checked",
                    file.string()));
  } else {
    lineage.notes.push_back(
        fmt::format("{} was not copied: whether a step of a later start was put here was not "
                    "checked",
                    file.string()));
  }
}

// Each start of a run has a larger generation, and GENERATION holds the latest.
void LineageWalk::check_generation(const fs::path& path, const Provenance& provenance) {
  const fs::path file = path.parent_path() / kGenerationName;
  const nlohmann::json& details = *provenance.details;
  if (!details.contains("generation") || !details["generation"].is_number_integer()) {
    return;
  }
  const auto generation = details["generation"].get<std::int64_t>();
  std::optional<std::int64_t> latest;
  try {
    latest = read_generation(file);
  } catch (const Error& error) {
    if (seen_.insert("generation:" + file.string()).second) {
      add_fault(error.exit_code(),
                fmt::format("{}: which starts of the run have saved its steps was not checked",
                            error.what()));
    }
    return;
  }
  if (!latest) {
    generation_is_gone(file, provenance);
  } else if (*latest >= kMostGeneration) {
    if (seen_.insert("generation:" + file.string()).second) {
      add_fault(ExitCode::bad_data,
                fmt::format("{} counts {} starts or more, which no run has had: it was changed",
                            file.string(), kMostGeneration));
    }
  } else if (generation > *latest) {
    add_fault(ExitCode::bad_data,
              fmt::format("{} was saved by start {} of its run, but {} counts {} starts: it comes "
                          "from another run, or that file was changed",
                          path.string(), generation, file.string(), *latest));
  }
}

void LineageWalk::steps_of(const fs::path& folder) {
  is_whole_folder_ = true;
  std::vector<fs::path> steps;
  std::vector<fs::path> strays;
  for (const fs::path& path : folder_entries(folder)) {
    (parse_step_folder_name(path.filename().string()) ? steps : strays).push_back(path);
  }
  std::sort(steps.begin(), steps.end());
  std::sort(strays.begin(), strays.end());
  if (steps.empty()) {
    throw no_checkpoint_in(folder);
  }
  std::size_t deleted = 0;
  for (const fs::path& path : steps) {
    if (fs::is_symlink(fs::symlink_status(path))) {
      add_item(0, "checkpoint", path.string()).code = ExitCode::bad_data;
      add_fault(ExitCode::bad_data,
                fmt::format("{} is a symbolic link: a step of this folder was replaced by what is "
                            "elsewhere",
                            path.string()));
    } else if (!step(path, 0, "checkpoint")) {
      ++deleted;
      lineage.notes.push_back(fmt::format(
          "{} was deleted during this check, as a run does (checkpoint.keep)", path.string()));
    }
  }
  if (deleted == steps.size()) {
    throw NotFound(
        fmt::format("{}: all steps were deleted during this check; repeat it", folder.string()));
  }
  // Last, since a save or deletion in progress may have ended by now.
  std::for_each(strays.begin(), strays.end(), [&](const fs::path& path) { stray(path); });
  compare_steps(folder, *parse_step_folder_name(steps.back().filename().string()));
}

bool LineageWalk::step(const fs::path& path, int depth, const std::string& role) {
  const bool is_there = visit_step(path, depth, role);
  follow_branches();
  return is_there;
}

bool LineageWalk::visit_step(const fs::path& path, int depth, const std::string& role) {
  const std::string key = without_links(path).string();
  if (!seen_.insert("folder:" + key).second) {
    add_item(depth, role, path.string()).summary = "see above";
    return true;
  }
  const std::optional<FolderCheck> found = check_step(path);
  if (!found) {
    seen_.erase("folder:" + key);
    return false;
  }
  const FolderCheck& check = *found;
  const std::size_t item = lineage.items.size();
  const std::size_t first = lineage.faults.size();
  add_item(depth, role, path.string());
  take(check);
  if (check.statements.empty()) {
    end_item(item, first, "");
    return true;
  }
  const auto statements = std::make_shared<const std::vector<SignedStatement>>(check.statements);
  bundles_[key] = statements;
  const Provenance& own = check.statements[0].provenance;
  const auto number = parse_step_folder_name(path.filename().string());
  const std::string stated = detail_of(own, "step");
  if (!makes_checkpoint(own.build_type)) {
    add_fault(ExitCode::bad_data,
              fmt::format("{}: the provenance is not that of a checkpoint", path.string()));
  } else if (number && stated != std::to_string(*number)) {
    add_fault(ExitCode::bad_data,
              fmt::format("{} holds step {}, as its provenance states: the folder was copied or "
                          "renamed",
                          path.string(), stated));
  } else if (depth == 0 && check.statements[0].signature.state == SignatureState::trusted) {
    check_home(path, own);
    check_generation(path, own);
    if (own.build_type == kTrainBuildType) {  // the log has no saves of commands
      compare_save(path, own);
    }
    note_audit_log(own);
  }
  check_ancestor_count(check.statements, path);
  lineage.items[item].facts = facts_of(check.statements[0]);
  if (const std::string all = energy_with_ancestors(check.statements); !all.empty()) {
    lineage.items[item].facts.push_back("energy " + all);
  }
  end_item(
      item, first,
      fmt::format("{} as signed, {}", counted(check.files, "file"), format_bytes(check.bytes)));
  materials(statements, 0, path, depth + 1);
  return true;
}

}  // namespace trireme
