#include "src/registry/model_files.h"

#include <algorithm>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "io/checkpoint/intact_step.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/evidence/file_digests.h"
#include "src/evidence/named_files.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_fault(const EvidenceFault& fault) {
  switch (fault.code) {
    case ExitCode::not_found:
      throw NotFound(fault.what);
    case ExitCode::refused:
      throw PolicyError(fault.what);
    default:
      throw DataError(fault.what);
  }
}

// Returns the digest of all files of a folder and their names.
std::string folder_digest(const fs::path& folder) {
  FolderCheck check;
  check.folder = folder;
  const FolderContents contents = list_folder(folder, check);
  if (!check.faults.empty()) {
    throw_fault(check.faults.front());
  }
  if (contents.files.empty()) {
    throw NotFound(fmt::format("{} holds no files", printable(folder.string())));
  }
  std::vector<fs::path> paths;
  for (const std::string& name : contents.files) {
    paths.push_back(folder / name);
  }
  const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 8);
  const std::vector<FileDigest> digests = digest_files(paths, threads);
  Sha256 all;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    if (digests[i].code != ExitCode::ok) {
      throw_fault({digests[i].code, digests[i].trouble});
    }
    all.update(fmt::format("{}  {}\n", digests[i].sha256, contents.files[i]));
  }
  return all.finish_hex();
}

bool holds_checkpoints(const fs::path& folder) {
  return is_step_folder(folder) || !list_steps(folder).empty();
}

}  // namespace

VersionRecord describe_model(const fs::path& folder, std::vector<std::string>& skipped) {
  std::error_code none;
  if (!fs::is_directory(folder, none)) {
    throw NotFound(fmt::format("{} is no folder", printable(folder.string())));
  }
  VersionRecord record;
  if (holds_checkpoints(folder)) {
    const StepFolder step = find_intact_step(folder, skipped);
    record.kind = ModelKind::checkpoint;
    record.path = fs::canonical(step.path);
    record.sha256 = step.manifest_sha256;
    record.step = step.step;
    if (step.manifest->meta.label) {
      record.label = step.manifest->meta.label->to_string();
    }
    return record;
  }
  if (fs::is_directory(folder / "checkpoints", none)) {
    throw NotFound(fmt::format("{} is the folder of a run; add {}", printable(folder.string()),
                               printable((folder / "checkpoints").string())));
  }
  record.kind = ModelKind::exported;
  record.path = fs::canonical(folder);
  record.sha256 = folder_digest(record.path);
  return record;
}

void check_model(const VersionRecord& record) {
  const std::string what = fmt::format("version {} of {}", record.version, record.model);
  std::error_code none;
  if (!fs::is_directory(record.path, none)) {
    throw NotFound(fmt::format("{}: {} is gone", what, printable(record.path.string())));
  }
  std::string found;
  if (record.kind == ModelKind::checkpoint) {
    const StepFolder step = inspect_step(record.path);
    check_readable(step);
    if (!step.manifest) {
      throw DataError(fmt::format("{}: {}", what, step.problem));
    }
    found = step.manifest_sha256;
  } else {
    found = folder_digest(record.path);
  }
  if (found != record.sha256) {
    throw DataError(fmt::format("{}: {} has changed since it was added: its digest is {}, not {}",
                                what, printable(record.path.string()), found, record.sha256));
  }
}

}  // namespace trireme
