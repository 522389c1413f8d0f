#include "io/checkpoint/memory/own_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include <sys/stat.h>

#include "io/checkpoint/names.h"
#include "src/base/file.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

void write_plainly(const fs::path& path, std::string_view text) {
  File file = File::create_new(path);
  file.write(text.data(), static_cast<std::int64_t>(text.size()));
  file.close();
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace

OwnFolder::OwnFolder(const NodeMemory& node, std::int64_t generation, int rank)
    : path_(node.own()), generation_(generation), rank_(rank) {}

fs::path OwnFolder::step(const MemoryStepName& name) const { return path_ / name.to_string(); }

fs::path OwnFolder::attempt(const MemoryStepName& name) const {
  return path_ /
         TransientName{TransientName::Kind::attempt, name.step, name.generation}.to_string();
}

fs::path OwnFolder::spare_folder() const { return path_ / fmt::format(".free-{}", generation_); }

fs::path OwnFolder::spare_file(std::size_t slot) const {
  return spare_folder() / fmt::format("{}-{}", rank_, slot);
}

void OwnFolder::make(const fs::path& folder) const {
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
  std::error_code code;
  std::vector<fs::path> doomed;
  for (fs::directory_iterator at(path_, code), end; !code && at != end; at.increment(code)) {
    if (std::find(folders.begin(), folders.end(), at->path()) == folders.end()) {
      doomed.push_back(at->path());
    }
  }
  if (code) {
    throw_errno(code.value(), "list", path_);
  }
  for (const fs::path& path : doomed) {
    remove_tree(path);
  }
}

void OwnFolder::complete(const MemoryStepName& name, const Manifest& manifest,
                         bool wants_copy) const {
  write_plainly(attempt(name) / kManifestName, to_text(manifest));
  if (wants_copy) {
    write_plainly(attempt(name) / kWantsCopyName, "");
  }
}

void OwnFolder::commit(const MemoryStepName& name) const {
  if (::rename(attempt(name).c_str(), step(name).c_str()) != 0) {
    throw_errno(errno, fmt::format("rename {} to", attempt(name).string()), step(name));
  }
}

void OwnFolder::undo(const MemoryStepName& name) const {
  (void)::rename(step(name).c_str(), attempt(name).c_str());
  for (const std::string_view file : {kManifestName, kWantsCopyName, kCopiedName}) {
    std::error_code ignored;
    fs::remove(attempt(name) / file, ignored);
  }
}

}  // namespace trireme
