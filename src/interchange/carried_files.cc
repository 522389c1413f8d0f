#include "src/interchange/carried_files.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/contained_file.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr std::array<std::string_view, 9> kCarried = {"tokenizer.json",
                                                      "tokenizer_config.json",
                                                      "special_tokens_map.json",
                                                      "added_tokens.json",
                                                      "vocab.json",
                                                      "merges.txt",
                                                      "tokenizer.model",
                                                      "chat_template.jinja",
                                                      kGenerationConfigName};
constexpr std::int64_t kMostBytes = 256 << 20;

bool is_dangling(const fs::path& path) {
  return fs::is_symlink(fs::symlink_status(path)) && !fs::exists(path);
}

// Throws DataError if a symbolic link has led out of the folder, except to the blobs of a snapshot
// of the Hugging Face hub.
void check_place(const File& file, const fs::path& folder) {
  const std::optional<fs::path> outside = place_outside(file, folder);
  const fs::path home = fs::canonical(folder);
  const bool is_snapshot = home.parent_path().filename() == "snapshots";
  // Not resolved: a model could make `blobs` a link to any folder.
  const std::string blobs = (home.parent_path().parent_path() / "blobs").string() + "/";
  if (outside && !(is_snapshot && outside->string().starts_with(blobs))) {
    throw DataError(fmt::format(
        "{} leads out of the model's folder, to {}, and would be copied from there: replace the "
        "symbolic link by the file itself if it belongs to the model",
        printable(file.path().string()), printable(outside->string())));
  }
}

std::string read_carried(const fs::path& path) {
  const File file = File::open_to_read(path);
  check_place(file, path.parent_path());
  const std::int64_t bytes = file.size();
  if (bytes > kMostBytes) {
    throw DataError(fmt::format("{} has {} bytes; at most {} are supported",
                                printable(file.path().string()), bytes, kMostBytes));
  }
  std::string contents(static_cast<std::size_t>(bytes), '\0');
  file.read_exactly_at(0, contents.data(), bytes);
  return contents;
}

void copy_carried_file(const fs::path& from, const fs::path& folder) {
  const std::string contents = read_carried(from);
  File file = File::create_new(folder / from.filename());
  file.write(contents.data(), std::ssize(contents));
  file.sync();
  file.close();
}

}  // namespace

std::vector<fs::path> carried_files_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const std::string_view name : kCarried) {
    const fs::path path = folder / name;
    if (is_dangling(path)) {
      throw DataError(fmt::format(
          "{} is a symbolic link to {}, which is missing: put the file in its place, or remove the "
          "link if the model has no such file",
          printable(path.string()), printable(fs::read_symlink(path).string())));
    }
    if (fs::exists(folder / name)) {
      paths.push_back(folder / name);
    }
  }
  return paths;
}

bool copy_carried_files(const fs::path& from, const fs::path& to) {
  const std::vector<fs::path> files = carried_files_in(from);
  for (const fs::path& path : files) {
    copy_carried_file(path, to);
  }
  return !files.empty();
}

void copy_carried_files(const ModelTokenizer& tokenizer, const fs::path& to) {
  if (!tokenizer.folder.empty()) {
    copy_carried_files(tokenizer.folder, to);
  }
  if (!tokenizer.settings.empty()) {
    copy_carried_file(tokenizer.settings / kGenerationConfigName, to);
  }
}

}  // namespace trireme
