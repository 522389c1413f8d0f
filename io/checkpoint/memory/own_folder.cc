#include "io/checkpoint/memory/own_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include <sys/stat.h>

#include "io/checkpoint/folder_entries.h"
#include "io/checkpoint/names.h"
#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kSparePrefix = ".free-";

void write_plainly(const fs::path& path, std::string_view text) {
  File file = File::create_new(path);
  file.write(text.data(), static_cast<std::int64_t>(text.size()));
  file.close();
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool contains(const std::vector<fs::path>& paths, const fs::path& path) {
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

// Returns the generation in the names that runs use here, or 0 for any other name.
std::int64_t generation_of(const std::string& name) {
  if (const auto step = parse_memory_step_name(name)) {
    return step->generation;
  }
  if (const auto transient = parse_transient_name(name)) {
    return transient->generation;
  }
  return name.starts_with(kSparePrefix)
             ? std::strtoll(name.c_str() + kSparePrefix.size(), nullptr, 10)
             : 0;
}

}  // namespace

OwnFolder::OwnFolder(const NodeMemory& node, std::int64_t generation, int rank)
    : path_(node.own()), partner_(node.partner()), generation_(generation), rank_(rank) {}

fs::path OwnFolder::step(const MemoryStepName& name) const { return path_ / name.to_string(); }

fs::path OwnFolder::attempt(const MemoryStepName& name) const {
  return path_ /
         TransientName{TransientName::Kind::attempt, name.step, name.generation}.to_string();
}

fs::path OwnFolder::spare_folder() const {
  return path_ / fmt::format("{}{}", kSparePrefix, generation_);
}

fs::path OwnFolder::spare_file(std::size_t slot) const {
  return spare_folder() / fmt::format("{}-{}", rank_, slot);
}

void OwnFolder::make(const fs::path& folder) const {
  if (!is_there(path_)) {
    open();  // a clean-up of /dev/shm may have removed it
  }
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    throw_errno(errno, "create folder", folder);
  }
}

bool OwnFolder::holds(const MemoryStepName& name) const {
  return is_there(step(name) / kManifestName);
}

bool OwnFolder::is_copied(const MemoryStepName& name) const {
  return is_there(step(name) / kCopiedName);
}

void OwnFolder::open() const { make_directories(path_); }

void OwnFolder::keep_only(const std::vector<fs::path>& folders) const {
  for (const fs::path& path : folder_entries(path_)) {
    if (!contains(folders, path) && generation_of(path.filename().string()) <= generation_) {
      remove(path);
    }
  }
}

void OwnFolder::keep_only_of_all(const std::vector<fs::path>& folders) const {
  for (const fs::path& path : folder_entries(path_)) {
    if (!contains(folders, path)) {
      remove(path);
    }
  }
}

void OwnFolder::remove(const fs::path& folder) const {
  const auto name = parse_memory_step_name(folder.filename().string());
  if (!name) {
    remove_tree(folder);
    return;
  }
  const TransientName trash{TransientName::Kind::trash, name->step, name->generation};
  const fs::path aside = folder.parent_path() / trash.to_string();
  remove_tree(aside);
  // ENOENT means that the agent has already removed this copy.
  if (::rename(folder.c_str(), aside.c_str()) != 0 && errno != ENOENT) {
    throw_errno(errno, "rename", folder);
  }
  remove_tree(aside);
}

void OwnFolder::remove_copies_before(const MemoryStepName& oldest) const {
  if (!is_there(partner_)) {
    return;
  }
  for (const fs::path& of_node : folder_entries(partner_)) {
    for (const fs::path& path : folder_entries(of_node)) {
      const auto name = parse_memory_step_name(path.filename().string());
      if (name &&
          std::pair(name->generation, name->step) < std::pair(oldest.generation, oldest.step)) {
        remove(path);
      }
    }
  }
}

void OwnFolder::complete(const MemoryStepName& name, const Manifest& manifest,
                         const FolderKey* key) const {
  const std::string text = to_text(manifest);
  if (key != nullptr) {
    write_plainly(attempt(name) / kKeysFileName,
                  keys_text(*key, parse_manifest(text, "the new manifest").seal));
  }
  write_plainly(attempt(name) / kManifestName, text);
}

void OwnFolder::commit(const MemoryStepName& name) const {
  remove(step(name));
  if (::rename(attempt(name).c_str(), step(name).c_str()) != 0) {
    throw_errno(errno, fmt::format("rename {} to", attempt(name).string()), step(name));
  }
}

void OwnFolder::want_copy(const MemoryStepName& name) const {
  if (is_there(step(name) / kWantsCopyName) || is_copied(name)) {
    return;
  }
  std::string shards;
  for (const fs::path& path : folder_entries(step(name))) {
    const std::string file = path.filename().string();
    shards += parse_shard_file_name(file) ? file + "\n" : "";
  }
  // The rename makes sure that the agent never reads a partial file.
  const fs::path draft = step(name) / fmt::format(".{}", kWantsCopyName);
  remove_tree(draft);
  write_plainly(draft, shards);
  if (::rename(draft.c_str(), (step(name) / kWantsCopyName).c_str()) != 0) {
    throw_errno(errno, "rename", draft);
  }
}

void OwnFolder::undo(const MemoryStepName& name) const {
  (void)::rename(step(name).c_str(), attempt(name).c_str());
  for (const std::string_view file : {kManifestName, kKeysFileName, kWantsCopyName, kCopiedName}) {
    std::error_code ignored;
    fs::remove(attempt(name) / file, ignored);
  }
}

}  // namespace trireme
