// AppendFile: a log that must never stop the program. After it was opened nothing throws: what does
// not fit on a full disk is dropped as a whole, counted, and writing goes on when there is space
// again. Records are all there or not at all. One thread at a time, one writer a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "src/base/file.h"

namespace trireme {

class AppendFile {
 public:
  // For lines: makes the file if need be; a torn last line, left by a killed process, is cut off.
  static AppendFile open_lines(const std::filesystem::path& path);
  // For binary records: the file must be new.
  static AppendFile create_new(const std::filesystem::path& path);

  // Whether the record was written.
  bool append(std::string_view record) noexcept;
  std::int64_t dropped() const { return dropped_; }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  AppendFile(File file, std::int64_t bytes) : file_(std::move(file)), bytes_(bytes) {}

  File file_;
  std::int64_t bytes_;  // of whole records
  std::int64_t dropped_ = 0;
};

}  // namespace trireme
