#include "io/data/input_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include <fnmatch.h>
#include <sys/stat.h>

#include "io/data/dataset_manifest.h"
#include "io/data/pack_folder.h"
#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 3> kVersionControl = {".git", ".hg", ".svn"};

bool excluded(const std::string& name, const std::vector<std::string>& patterns) {
  const std::string last = fs::path(name).filename();
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0 ||
           ::fnmatch(pattern.c_str(), last.c_str(), 0) == 0;
  });
}

struct stat status_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw_errno(errno, "read", path);
  }
  return status;
}

std::int64_t nanoseconds(const struct timespec& time) {
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

// Collects the files below the arguments and counts those that it skips.
class Walk {
 public:
  Walk(const std::vector<std::string>& exclude, const fs::path& not_in)
      : exclude_(exclude),
        not_in_(not_in.empty() ? not_in : fs::absolute(not_in).lexically_normal()) {}

  void argument(const fs::path& path) {
    if (S_ISDIR(status_of(path).st_mode)) {
      if (is_dataset_folder(path)) {
        throw ConfigError(fmt::format("{} is a dataset already, not text: name its inputs instead",
                                      path.string()));
      }
      folder(path);
    } else {
      add(path, path.filename());
    }
  }
  InputFiles take() { return std::move(found_); }

 private:
  void folder(const fs::path& root) {
    std::error_code code;
    auto at = fs::recursive_directory_iterator(root, code);
    for (; !code && at != fs::recursive_directory_iterator(); at.increment(code)) {
      const std::string name = at->path().lexically_relative(root);
      if (!at->is_symlink() && at->is_directory()) {
        if (skips_folder(at->path(), name)) {
          at.disable_recursion_pending();
        }
      } else if (excluded(name, exclude_)) {
        continue;
      } else if (!at->is_symlink() && at->is_regular_file()) {
        add(at->path(), name);
      } else {
        ++found_.skipped;
      }
    }
    if (code) {
      throw_errno(code.value(), "read", root);
    }
  }

  bool skips_folder(const fs::path& path, const std::string& name) const {
    const std::string last = path.filename();
    return std::find(kVersionControl.begin(), kVersionControl.end(), last) !=
               kVersionControl.end() ||
           excluded(name, exclude_) || fs::absolute(path).lexically_normal() == not_in_ ||
           is_dataset_folder(path);
  }

  void add(const fs::path& path, std::string name) {
    const struct stat status = status_of(path);
    if (!S_ISREG(status.st_mode)) {
      throw ConfigError(
          fmt::format("{} is neither a regular file nor a folder: inputs are read several times, "
                      "so save the data of a pipe or device to a file first",
                      path.string()));
    }
    found_.files.push_back({path.lexically_normal(), std::move(name), status.st_size,
                            nanoseconds(status.st_mtim), status.st_ino,
                            nanoseconds(status.st_ctim)});
  }

  const std::vector<std::string>& exclude_;
  fs::path not_in_;
  InputFiles found_;
};

std::string_view take_until_nul(std::string_view& text) {
  const std::size_t end = text.find('\0');
  check(end != std::string_view::npos, "a list of files ends with NUL");
  const std::string_view field = text.substr(0, end);
  text.remove_prefix(end + 1);
  return field;
}

template <class Integer>
Integer parse_integer(std::string_view text) {
  Integer value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(code == std::errc() && end == text.data() + text.size(), "a list of files holds integers");
  return value;
}

}  // namespace

bool InputFile::is_jsonl() const {
  const std::string inside = name_inside(path);
  return has_suffix(inside, ".jsonl") || has_suffix(inside, ".ndjson") ||
         (has_suffix(inside, ".json") && compression() != Compression::none);
}

bool InputFile::is_archive() const { return has_suffix(name_inside(path), ".tar"); }

bool InputFile::is_plain_text() const {
  return !is_jsonl() && !is_archive() && compression() == Compression::none;
}

fs::path dataset_with(const fs::path& path) {
  std::error_code code;
  const fs::path real = fs::canonical(path, code);
  if (code || !real.has_parent_path()) {
    return {};  // the command says that it does not exist
  }
  const fs::path folder = fs::is_directory(real, code) ? real : real.parent_path();
  const bool may_be_part = folder.filename() == kShardsFolder;
  return may_be_part && is_dataset_folder(folder.parent_path()) ? folder.parent_path() : fs::path();
}

InputFiles find_input_files(const std::vector<std::string>& arguments,
                            const std::vector<std::string>& exclude, const fs::path& not_in) {
  Walk walk(exclude, not_in);
  for (const std::string& argument : arguments) {
    walk.argument(argument);
  }
  InputFiles found = walk.take();
  std::vector<InputFile>& files = found.files;
  const auto path = [](const InputFile& file) -> const std::string& { return file.path; };
  std::ranges::sort(files, {}, path);
  const auto same = [](const InputFile& a, const InputFile& b) { return a.path == b.path; };
  files.erase(std::unique(files.begin(), files.end(), same), files.end());
  return found;
}

bool is_unchanged(const InputFile& file) {
  const struct stat now = status_of(file.path);
  return now.st_size == file.bytes && now.st_ino == file.inode &&
         nanoseconds(now.st_mtim) == file.modified_ns;
}

bool is_untouched(const InputFile& file) {
  return is_unchanged(file) && nanoseconds(status_of(file.path).st_ctim) == file.changed_ns;
}

std::string input_files_text(const InputFiles& inputs) {
  std::string text = std::to_string(inputs.skipped);
  text.push_back('\0');
  for (const InputFile& file : inputs.files) {
    for (const std::string& field :
         {file.path, file.name, std::to_string(file.bytes), std::to_string(file.modified_ns),
          std::to_string(file.inode), std::to_string(file.changed_ns)}) {
      text += field;
      text.push_back('\0');
    }
  }
  return text;
}

InputFiles parse_input_files(std::string_view text) {
  InputFiles inputs;
  inputs.skipped = parse_integer<std::int64_t>(take_until_nul(text));
  while (!text.empty()) {
    InputFile file;
    file.path = take_until_nul(text);
    file.name = take_until_nul(text);
    file.bytes = parse_integer<std::int64_t>(take_until_nul(text));
    file.modified_ns = parse_integer<std::int64_t>(take_until_nul(text));
    file.inode = parse_integer<std::uint64_t>(take_until_nul(text));
    file.changed_ns = parse_integer<std::int64_t>(take_until_nul(text));
    inputs.files.push_back(std::move(file));
  }
  return inputs;
}

}  // namespace trireme
