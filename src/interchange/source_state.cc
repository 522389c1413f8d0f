#include "src/interchange/source_state.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/core.h>
#include <sys/stat.h>

#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

bool may_be_read(const fs::path& path) {
  constexpr std::array<std::string_view, 5> kEnds = {".safetensors", ".json", ".jinja", ".model",
                                                     ".txt"};
  return std::find(kEnds.begin(), kEnds.end(), path.extension().string()) != kEnds.end();
}

fs::path folder_of_source(const fs::path& source) {
  std::error_code ignored;
  const fs::path parent = source.has_parent_path() ? source.parent_path() : fs::path(".");
  return fs::is_directory(source, ignored) ? source : parent;
}

}  // namespace

SourceState::SourceState(const fs::path& source)
    : folder_(folder_of_source(source)), files_(note()) {}

SourceState::Files SourceState::note() const {
  Files files;
  std::error_code code;
  for (fs::directory_iterator at(folder_, code), end; !code && at != end; at.increment(code)) {
    struct stat status {};
    if (may_be_read(at->path()) && ::stat(at->path().c_str(), &status) == 0) {
      files[at->path().filename().string()] = {
          status.st_size, status.st_ino,
          Times(status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                status.st_ctim.tv_nsec)};
    }
  }
  return files;
}

void SourceState::check_unchanged() const {
  const Files now = note();
  const auto refuse = [&](const std::string& name) {
    throw DataError(fmt::format(
        "{}: the source changed while it was read: import it again when nothing writes to it",
        printable((folder_ / name).string())));
  };
  for (const auto& [name, noted] : now) {
    const auto before = files_.find(name);
    if (before == files_.end() || !(before->second == noted)) {
      refuse(name);
    }
  }
  for (const auto& [name, noted] : files_) {
    if (!now.contains(name)) {
      refuse(name);
    }
  }
}

}  // namespace trireme
