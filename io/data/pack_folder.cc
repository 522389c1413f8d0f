#include "io/data/pack_folder.h"

#include <optional>

#include <nlohmann/json.hpp>

#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/keys_name.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

// Throws PolicyError if the folder holds other files.
void check_folder(const fs::path& folder) {
  std::error_code code;
  if (fs::is_directory(folder / kNotesFolder, code) || !fs::exists(folder, code)) {
    return;
  }
  if (!fs::is_directory(folder, code) || !fs::is_empty(folder, code)) {
    throw PolicyError(
        fmt::format("{}: this folder is neither empty nor an unfinished dataset: choose another "
                    "output, or empty it",
                    folder.string()));
  }
}

// Removes partial files below DIR/shards, and those of shards that are not in this plan.
void remove_strays(const DatasetJob& job) {
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(job.folder / kShardsFolder, code)) {
    const std::string name = entry.path().filename();
    const std::string digits = name.substr(0, name.find('.'));
    const bool is_number = !digits.empty() && digits.size() < 10 &&
                           digits.find_first_not_of("0123456789") == std::string::npos;
    const bool planned =
        is_number && std::stoull(digits) < job.shards.size() &&
        name == fs::path(shard_name(std::stoull(digits), job.encrypts())).filename();
    if (!planned) {
      fs::remove(entry.path(), code);
    }
  }
}

}  // namespace

std::string shard_name(std::size_t index, bool is_encrypted) {
  return fmt::format("{}/{:05}.h5{}", kShardsFolder, index, is_encrypted ? kSealedSuffix : "");
}

fs::path note_path(const fs::path& folder, std::size_t index) {
  return folder / kNotesFolder / fmt::format("{:05}.json", index);
}

std::string fingerprint_of(const DatasetJob& job) {
  Sha256 digest;
  for (const ShardJob& shard : job.shards) {
    digest.update(shard.fingerprint + "\n");
  }
  if (job.label) {
    digest.update(fmt::format("label {}\n", to_json(*job.label).dump()));
  }
  return digest.finish_hex();
}

bool is_complete(const DatasetJob& job) {
  const fs::path path = job.folder / kDatasetManifestName;
  std::error_code code;
  if (!fs::exists(path, code)) {
    return false;
  }
  const DatasetManifest found = parse_dataset_manifest(read_file(path), path.string());
  if (found.fingerprint != fingerprint_of(job)) {
    throw PolicyError(
        fmt::format("{}: this folder holds a dataset made from other inputs or with other options: "
                    "choose another output, or remove it",
                    job.folder.string()));
  }
  if (found.is_encrypted() != job.encrypts()) {
    throw PolicyError(fmt::format(
        "{}: this folder holds this dataset already, {}: {} it in place with `trireme data {} {}`, "
        "or choose another output",
        job.folder.string(), job.encrypts() ? "but not encrypted" : "but encrypted",
        job.encrypts() ? "encrypt" : "decrypt", job.encrypts() ? "encrypt" : "decrypt",
        job.folder.string()));
  }
  remove_notes(job.folder);
  return true;
}

FileLock prepare_folder(const DatasetJob& job) {
  check_folder(job.folder);
  std::error_code none;
  if (!job.encrypts() && fs::exists(job.folder / kNotesFolder / kKeysFileName, none)) {
    throw PolicyError(
        fmt::format("{}: this pack was begun with keys, and would go on without encryption: name "
                    "one of them with --key, or remove the folder to begin anew",
                    job.folder.string()));
  }
  make_directories(job.folder / kNotesFolder);
  make_directories(job.folder / kShardsFolder);
  std::optional<FileLock> lock = FileLock::try_take(job.folder / kPackLockName);
  if (!lock) {
    throw PolicyError(
        fmt::format("{}: another `trireme data pack` or `convert` is writing to this folder: wait "
                    "for it to finish, or choose another output",
                    job.folder.string()));
  }
  remove_strays(job);
  return std::move(*lock);
}

bool has_notes(const fs::path& folder) {
  std::error_code code;
  for (fs::directory_iterator it(folder / kNotesFolder, code), end; !code && it != end;
       it.increment(code)) {
    if (it->path().extension() == ".json" && it->path().filename() != kKeysFileName) {
      return true;
    }
  }
  return false;
}

bool has_shards(const fs::path& folder) {
  std::error_code code;
  return fs::directory_iterator(folder / kShardsFolder, code) != fs::directory_iterator();
}

void remove_notes(const fs::path& folder) {
  std::error_code ignored;
  fs::remove_all(folder / kNotesFolder, ignored);
}

void abandon_folder(const fs::path& folder) {
  remove_notes(folder);
  std::error_code ignored;
  fs::remove(folder / kShardsFolder, ignored);
  fs::remove(folder, ignored);
}

}  // namespace trireme
