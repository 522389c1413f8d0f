#include "src/registry/model_files.h"

#include <algorithm>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "io/checkpoint/intact_step.h"
#include "io/checkpoint/verify.h"
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

// Returns the paths of all files below a folder.
std::vector<std::string> files_in(const fs::path& folder) {
  FolderCheck check;
  check.folder = folder;
  FolderContents contents = list_folder(folder, check);
  if (!check.faults.empty()) {
    throw_fault(check.faults.front());
  }
  if (contents.files.empty()) {
    throw NotFound(fmt::format("{} holds no files", printable(folder.string())));
  }
  return contents.files;
}

// Returns the digest of all files of a folder and their names.
std::string folder_digest(const fs::path& folder, const std::vector<std::string>& names) {
  std::vector<fs::path> paths;
  for (const std::string& name : names) {
    paths.push_back(folder / name);
  }
  const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 8);
  const std::vector<FileDigest> digests = digest_files(paths, threads);
  Sha256 all;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    if (digests[i].code != ExitCode::ok) {
      throw_fault({digests[i].code, digests[i].trouble});
    }
    all.update(fmt::format("{}  {}\n", digests[i].sha256, names[i]));
  }
  return all.finish_hex();
}

// Throws NotFound unless a folder holds what one of the formats of `trireme export` consists of.
void check_exported(const fs::path& folder, const std::vector<std::string>& files) {
  const auto has = [&](std::string_view name) {
    return std::ranges::find(files, name) != files.end();
  };
  const auto has_kind = [&](std::string_view suffix) {
    return std::ranges::any_of(files, [&](const std::string& name) {
      return name.ends_with(suffix) && name.find('/') == std::string::npos;
    });
  };
  const bool is_hf = (has("config.json") || has("adapter_config.json")) && has_kind(".safetensors");
  const bool is_triton = has("config.pbtxt") && has("1/model.onnx");
  if (!is_hf && !is_triton && !has_kind(".gguf") && !has("model.onnx")) {
    throw NotFound(fmt::format(
        "{} holds no model: neither checkpoints nor what `trireme export` writes, which is "
        "config.json or adapter_config.json with *.safetensors, *.gguf, model.onnx, or "
        "config.pbtxt with 1/model.onnx",
        printable(folder.string())));
  }
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
  const std::vector<std::string> files = files_in(record.path);
  check_exported(folder, files);
  record.sha256 = folder_digest(record.path, files);
  return record;
}

void check_model(const VersionRecord& record, ModelCheck depth) {
  const std::string what = fmt::format("version {} of {}", record.version, record.model);
  std::error_code none;
  if (!fs::is_directory(record.path, none)) {
    throw NotFound(fmt::format("{}: {} is gone", what, printable(record.path.string())));
  }
  std::string found;
  StepFolder step;
  if (record.kind == ModelKind::checkpoint) {
    step = inspect_step(record.path);
    check_readable(step);
    if (!step.manifest) {
      throw DataError(fmt::format("{}: {}", what, step.problem));
    }
    found = step.manifest_sha256;
  } else {
    found = folder_digest(record.path, files_in(record.path));
  }
  if (found != record.sha256) {
    throw DataError(fmt::format("{}: {} has changed since it was added: its digest is {}, not {}",
                                what, printable(record.path.string()), found, record.sha256));
  }
  if (step.manifest && depth == ModelCheck::contents) {
    const std::vector<std::string> faults = verify_step(record.path, *step.manifest);
    if (!faults.empty()) {
      throw DataError(fmt::format("{}: {} has changed since it was added: {}", what,
                                  printable(record.path.string()), printable(faults.front())));
    }
  }
}

}  // namespace trireme
