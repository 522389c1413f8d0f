#include "io/data/path_list.h"

#include <array>
#include <cerrno>
#include <climits>

#include <fcntl.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/unique_handle.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Collects lines from text that arrives in pieces.
class Lines {
 public:
  explicit Lines(const fs::path& from) : from_(from) {}

  void add(std::string_view text) {
    for (const char c : text) {
      if (c == '\n') {
        end_line();
      } else if (c == '\0') {
        throw_bad("holds a zero byte, which no path does");
      } else if (line_.size() == PATH_MAX) {
        throw_bad(fmt::format("is longer than {} bytes, the longest path", PATH_MAX));
      } else {
        line_.push_back(c);
      }
    }
  }
  std::vector<std::string> finish() {
    end_line();
    return std::move(paths_);
  }

 private:
  void end_line() {
    if (!line_.empty()) {
      paths_.push_back(line_);
    }
    line_.clear();
    ++number_;
  }
  [[noreturn]] void throw_bad(const std::string& what) const {
    throw DataError(fmt::format("{}, line {}: {}: give a text file with one path per line",
                                from_.string(), number_, what));
  }

  const fs::path& from_;
  std::vector<std::string> paths_;
  std::string line_;
  std::int64_t number_ = 1;
};

}  // namespace

std::vector<std::string> read_path_list(const fs::path& from) {
  const fs::path name = from == "-" ? "standard input" : from;
  // Unlike datasets, a list may come from a pipe, as in --files-from <(find ...).
  UniqueHandle<FileDescriptorTraits> file;
  if (from != "-") {
    file = UniqueHandle<FileDescriptorTraits>(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) {
      throw_errno(errno, "open", from);
    }
  }
  Lines lines(name);
  std::array<char, 1 << 16> piece{};
  while (true) {
    const ssize_t got = ::read(from == "-" ? STDIN_FILENO : file.get(), piece.data(), piece.size());
    if (got == 0) {
      return lines.finish();
    }
    if (got > 0) {
      lines.add({piece.data(), static_cast<std::size_t>(got)});
    } else if (errno == EISDIR) {
      throw NotFound(fmt::format("{} is a folder, not a list of paths", name.string()));
    } else if (errno != EINTR) {
      throw_errno(errno, "read", name);
    }
  }
}

}  // namespace trireme
