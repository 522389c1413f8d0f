// AppendFile is a log file that never stops the program. Once it is open nothing throws: a record
// that a full disk refuses is dropped completely and counted, and writing resumes when there is
// space again. One writer per file; one thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "src/base/file.h"

namespace trireme {

class AppendFile {
 public:
  // Opens a file of lines, creating it if needed. Removes a torn last line, which a killed process
  // may have left.
  static AppendFile open_lines(const std::filesystem::path& path);
  // Creates a file of binary records, which must not exist yet.
  static AppendFile create_new(const std::filesystem::path& path);

  // Returns whether the record was written.
  bool append(std::string_view record) noexcept;
  std::int64_t dropped() const { return dropped_; }
  // Returns why the first of them was dropped: "cannot write PATH: ...".
  const std::string& first_failure() const { return first_failure_; }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  AppendFile(File file, std::int64_t bytes) : file_(std::move(file)), bytes_(bytes) {}

  File file_;
  std::int64_t bytes_;  // size of all complete records
  std::int64_t dropped_ = 0;
  std::string first_failure_;
};

}  // namespace trireme
