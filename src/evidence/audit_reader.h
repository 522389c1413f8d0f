// AuditReader reads the lines of an audit log one after another, in constant memory however long
// the log or a damaged line is. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/file.h"

namespace trireme {

class AuditReader {
 public:
  struct Line {
    std::string_view text;  // without the line end; of a line that is too long, the beginning
    std::int64_t bytes = 0;
    std::string sha256 = {};  // of the whole line, if it is longer than `text`; else empty
    bool has_end = true;      // false for a last line without line end
    bool is_too_long() const { return bytes > static_cast<std::int64_t>(text.size()); }
  };

  // Reads the bytes of the file, which outlives this, from `begin` to `end`. What is appended
  // meanwhile is not read.
  AuditReader(const File& file, std::int64_t begin, std::int64_t end)
      : file_(file), left_(end - begin), offset_(begin) {}

  // Returns nothing at the end. The text is valid until the next call.
  std::optional<Line> next();

 private:
  bool read_more();
  Line rest_of_long_line();

  const File& file_;
  std::int64_t left_;    // bytes that were not read so far
  std::int64_t offset_;  // in the file, of the next read
  std::string buffer_;   // from position_ on, what was read and not returned
  std::size_t position_ = 0;
  std::string long_line_;  // the beginning of the latest line that is too long
};

}  // namespace trireme
