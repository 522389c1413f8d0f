// DamagedLines counts the lines of a file that its reader leaves out, such as those that a crash
// has torn, and reports them to people.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace trireme {

struct DamagedLines {
  std::int64_t count = 0;
  std::int64_t first = 0;  // number of the first one, from 1; 0 if there is none
  // Whether the last line has no end and cannot be used. It may be just being written, and so does
  // not count, unless it begins with a byte of zero, which a crash can leave.
  bool last_is_unfinished = false;

  void add(std::int64_t line);
  // Returns "1 damaged line (line 17)" or "2 damaged lines (the first is line 17)".
  std::string to_text() const;
};

// Calls use() with each line of a text, without its end. use() returns whether the line is whole
// and one of those that the file should have. Returns the other lines.
DamagedLines use_lines(std::string_view text, const std::function<bool(std::string_view)>& use);

// Prints a warning on stderr that names the file, if it has such lines. Throws std::system_error if
// that cannot be written.
void warn_of(const DamagedLines& lines, const std::filesystem::path& file);

}  // namespace trireme
