// AppendFile is a log file that never stops the program. Once it is open nothing throws: a record
// that a full disk refuses is dropped completely and counted, and writing resumes when there is
// space again. One writer per file; one thread at a time.
//
// With a sealer, the file is encrypted, and this object writes sections of it. A section ends when
// the object is destroyed, or when a record is dropped: the next record begins another one, so that
// nothing is ever encrypted in the place of something else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "src/base/file.h"
#include "src/base/run_text.h"

namespace trireme {

class AppendFile {
 public:
  // Opens a file of lines, creating it if needed. Removes a torn last line, which a killed process
  // may have left. sealer: null for a plain file; otherwise the file is encrypted, empty or absent.
  // last_line: of the encrypted file that this one continues, if it does; the first section of an
  // empty file names its digest.
  static AppendFile open_lines(const std::filesystem::path& path,
                               std::unique_ptr<TextSealer> sealer = nullptr,
                               std::string last_line = "");
  // Creates a file of binary records, which must not exist yet. sealer: null for a plain file.
  static AppendFile create_new(const std::filesystem::path& path,
                               std::unique_ptr<TextSealer> sealer = nullptr);
  ~AppendFile();
  AppendFile(AppendFile&&) noexcept = default;
  AppendFile& operator=(AppendFile&&) noexcept = default;

  // Returns whether the record was written.
  bool append(std::string_view record) noexcept;
  // Ends the section of an encrypted file, if one was begun.
  void end_section() noexcept;
  std::int64_t dropped() const { return dropped_; }
  // Returns why the first of them was dropped: "cannot write PATH: ...".
  const std::string& first_failure() const { return first_failure_; }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  AppendFile(File file, std::int64_t bytes, std::unique_ptr<TextSealer> sealer,
             std::string last_line)
      : file_(std::move(file)),
        bytes_(bytes),
        sealer_(std::move(sealer)),
        last_line_(std::move(last_line)) {}
  void write(std::string_view bytes);
  void write_lines(const std::string& lines);
  void drop_rest() noexcept;

  File file_;
  std::int64_t bytes_;  // size of all complete records
  std::int64_t dropped_ = 0;
  std::string first_failure_;
  std::unique_ptr<TextSealer> sealer_;
  std::string last_line_;  // of an encrypted file, or of the one that it continues
  bool is_in_section_ = false;
};

// Returns the last whole line of a file, without its line end; "" if there is none.
std::string last_line_of(const std::filesystem::path& path);

}  // namespace trireme
