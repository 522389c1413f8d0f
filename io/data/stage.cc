#include "io/data/stage.h"

#include "io/data/block_digests.h"
#include "io/data/dataset.h"
#include "io/data/dataset_keys.h"
#include "io/data/file_lock.h"
#include "src/base/contained_file.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/provenance_name.h"
#include "src/base/units.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

// Compares the manifest and the files' sizes only; damage is found when the data is first read.
bool is_staged(const fs::path& to, const std::string& manifest_text) {
  std::error_code code;
  if (!fs::exists(to, code) || (fs::is_directory(to, code) && fs::is_empty(to, code))) {
    return false;
  }
  const fs::path manifest = to / kDatasetManifestName;
  if (!fs::exists(manifest, code) || read_file(manifest) != manifest_text) {
    throw PolicyError(
        fmt::format("{}: this folder contains something other than this dataset: remove it, or "
                    "stage to another folder",
                    to.string()));
  }
  Dataset(to, manifest_text).check_sizes();
  return true;
}

void check_capacity(const fs::path& folder, std::int64_t needed) {
  const std::int64_t available = free_bytes(folder);
  if (available < needed) {
    throw IoError(fmt::format(
        "{}: {} are needed, but {} are free: free space, or stage to another file system",
        folder.string(), format_bytes(needed), format_bytes(available)));
  }
}

void copy_shard(const fs::path& from, const fs::path& to, const ShardEntry& entry,
                const std::function<void(std::int64_t)>& copied) {
  const File source = File::open_to_read(from);
  make_directories(to.parent_path());
  File target = File::create_new(to);
  target.reserve(entry.bytes);
  std::vector<char> buffer(static_cast<std::size_t>(kBlockBytes));
  for (std::int64_t block = 0; block < block_count(entry.bytes); ++block) {
    const std::int64_t bytes = block_bytes(block, entry.bytes);
    source.read_exactly_at(block * kBlockBytes, buffer.data(), bytes);
    const std::uint64_t expected = entry.blocks[static_cast<std::size_t>(block)];
    const std::uint64_t found = xxh3(buffer.data(), bytes);
    if (found != expected) {
      throw DataError(damage_text(from, block, entry.bytes, expected, found));
    }
    target.write_at(block * kBlockBytes, buffer.data(), bytes);
    copied(bytes);
  }
  target.sync();
  target.close();
  sync_directory(to.parent_path());
}

// Copies into a temporary folder, which is renamed when it is complete.
void copy_all(const Dataset& dataset, const std::string& manifest_text, const fs::path& staging,
              const std::function<void(std::int64_t, std::int64_t)>& progress) {
  std::int64_t done = 0;
  const std::int64_t total = dataset.manifest().bytes();
  if (progress) {
    progress(0, total);  // starts the clock
  }
  for (const ShardEntry& entry : dataset.manifest().shards) {
    copy_shard(dataset.folder() / entry.path, staging / entry.path, entry, [&](std::int64_t bytes) {
      done += bytes;
      if (progress) {
        progress(done, total);
      }
    });
  }
  write_file_durably(staging / kDatasetManifestName, manifest_text);
}

// Copies the wrapped key of an encrypted dataset, unless the copy has the same one: the recipients
// may have changed since.
void copy_keys(const Dataset& dataset, const fs::path& to) {
  if (!dataset.manifest().is_encrypted()) {
    return;
  }
  const std::string text = to_text(read_dataset_keys(dataset.folder(), dataset.manifest()));
  const fs::path path = to / std::string(kKeysFileName);
  std::error_code code;
  if (!fs::exists(path, code) || read_file(path) != text) {
    write_file_durably(path, text);
  }
}

// Copies the provenance if there is one that the copy lacks. Returns a warning if that fails, else
// "": the dataset can be read without it.
std::string copy_provenance(const fs::path& from, const fs::path& to) {
  std::error_code code;
  if (!fs::exists(fs::symlink_status(from / kProvenanceName, code)) ||
      fs::exists(fs::symlink_status(to / kProvenanceName, code))) {
    return "";
  }
  try {
    write_file_durably(to / kProvenanceName, read_contained_file(from / kProvenanceName, from));
  } catch (const Error& error) {
    return fmt::format("the dataset is staged without its provenance: {}", error.what());
  }
  return "";
}

}  // namespace

StageReport stage(const fs::path& from, const fs::path& given,
                  const std::function<void(std::int64_t, std::int64_t)>& progress) {
  // "DIR/" and "DIR" name the same folder.
  const fs::path to = given.has_filename() ? given : given.parent_path();
  const std::string manifest_text = read_manifest_text(from);
  const Dataset dataset(from, manifest_text);
  dataset.check_sizes();
  const fs::path parent = to.has_parent_path() ? to.parent_path() : fs::path(".");
  make_directories(parent);
  const FileLock lock = FileLock::wait_for(fs::path(to.string() + ".lock"));
  StageReport report{dataset.manifest().bytes(), is_staged(to, manifest_text), ""};
  if (report.was_there) {
    copy_keys(dataset, to);
    report.warning = copy_provenance(from, to);
    return report;
  }
  const fs::path staging = to.string() + ".staging";
  std::error_code ignored;
  fs::remove_all(staging, ignored);
  check_capacity(parent, report.bytes + static_cast<std::int64_t>(manifest_text.size()));
  try {
    copy_all(dataset, manifest_text, staging, progress);
    copy_keys(dataset, staging);
    report.warning = copy_provenance(from, staging);
    fs::remove(to, ignored);
    rename_durably(staging, to);
  } catch (...) {
    fs::remove_all(staging, ignored);
    throw;
  }
  return report;
}

}  // namespace trireme
