#include "src/interchange/carried_files.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/contained_file.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/interchange/training_tokenizer.h"
#include "src/train/saving/first_weights.h"

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
                                                      "generation_config.json"};
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
    const std::string contents = read_carried(path);
    File file = File::create_new(to / path.filename());
    file.write(contents.data(), std::ssize(contents));
    file.sync();
    file.close();
  }
  return !files.empty();
}

std::string copy_carried_files(const StepFolder& step, const fs::path& to) {
  if (copy_carried_files(step.path, to)) {
    return "";
  }
  const std::optional<FirstWeights> first = find_first_weights(step);
  if (first && !first->is_there) {
    return fmt::format(
        "the files of the tokenizer are missing, because {}, the imported model with which the run "
        "began, is gone or another checkpoint is there now: copy them from the model's own files",
        first->folder.string());
  }
  if (first) {
    copy_carried_files(first->folder, to);
    return "";
  }
  const std::optional<TrainingTokenizer> trained = find_training_tokenizer(step);
  if (trained && !trained->folder.empty()) {
    copy_carried_files(trained->folder, to);
  }
  return trained ? trained->missing : "";
}

}  // namespace trireme
