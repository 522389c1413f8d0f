#include "src/keys/encrypted_files.h"

#include <algorithm>
#include <array>
#include <string>
#include <system_error>

#include "src/base/run_text.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// The files that a run encrypts, by folder and by the end of their names.
struct FileKind {
  const char* folder;
  std::string_view suffix;
};
constexpr std::array<FileKind, 4> kFileKinds = {
    {{"", "metrics.jsonl"}, {"logs", ".jsonl"}, {"trace", ".json"}, {"tensorboard", ""}}};

enum class FileForm { encrypted, plain, none };

FileForm form_of(const fs::directory_entry& entry) {
  if (!entry.is_regular_file() || entry.is_symlink()) {
    return FileForm::none;
  }
  return is_sealed_file(entry.path()) ? FileForm::encrypted : FileForm::plain;
}

std::vector<fs::path> find_files(const fs::path& run, FileForm form) {
  std::vector<fs::path> files;
  for (const auto& [folder, suffix] : kFileKinds) {
    std::error_code none;
    for (fs::directory_iterator at(*folder == '\0' ? run : run / folder, none), end;
         !none && at != end; at.increment(none)) {
      if (at->path().filename().string().ends_with(suffix) && form_of(*at) == form) {
        files.push_back(at->path());
      }
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<fs::path> encrypted_files(const fs::path& run) {
  return find_files(run, FileForm::encrypted);
}

std::vector<fs::path> plain_files(const fs::path& run) { return find_files(run, FileForm::plain); }

std::vector<fs::path> misplaced_entries(const fs::path& run) {
  return find_files(run, FileForm::none);
}

bool is_file_name(std::string_view name) {
  return !name.empty() &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") ==
             std::string_view::npos;
}

}  // namespace trireme
