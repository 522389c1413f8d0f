// LineBlocks: the text of a piece of a file, a block at a time, in bounded memory. Borrows the
// file; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/file.h"

namespace trireme {

// The first byte at or after `offset` where a line starts: 0, one past a newline, or the end.
// Looks for a newline in 1 GiB at most. Without one, whole_lines: DataError; else `offset`, where
// the line is broken.
std::int64_t line_start(const File& file, std::int64_t offset, std::int64_t file_bytes,
                        bool whole_lines);

class LineBlocks {
 public:
  // [begin, end): starts of lines. whole_lines: a block never breaks a line (DataError for a line
  // above 1 GiB); else a line longer than a block is broken.
  LineBlocks(const File& file, std::int64_t begin, std::int64_t end, bool whole_lines);

  struct Block {
    std::int64_t start;     // byte in the file
    std::string_view text;  // valid until the following next()
  };
  std::optional<Block> next();

 private:
  void read_more();

  const File& file_;
  std::int64_t position_;  // of the first byte of buffer_, in the file
  std::int64_t read_;      // up to which byte the file has been read
  std::int64_t end_;
  bool whole_lines_;
  std::string buffer_;
  std::size_t taken_ = 0;  // bytes of buffer_ handed out by the last next()
};

}  // namespace trireme
