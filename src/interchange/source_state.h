// Finds out whether the files of a model's folder change while they are read. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>

namespace trireme {

class SourceState {
 public:
  // source: the folder, or a file in it. Notes the size and the times of last change of each file
  // that may belong to the model. Throws nothing: what is missing has no files.
  explicit SourceState(const std::filesystem::path& source);
  // Throws DataError that names a file which was changed, added or removed since.
  void check_unchanged() const;

 private:
  using Times = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  struct Noted {
    std::int64_t bytes = 0;
    std::uint64_t inode = 0;
    Times changed;  // mtime and ctime, in seconds and nanoseconds
    friend bool operator==(const Noted&, const Noted&) = default;
  };
  using Files = std::map<std::string, Noted>;
  Files note() const;

  std::filesystem::path folder_;
  Files files_;
};

}  // namespace trireme
