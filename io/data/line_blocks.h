// LineBlocks reads a range of a text file block by block, in bounded memory. Borrows the file; for
// one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/file.h"

namespace trireme {

// Returns the first byte at or after `offset` where a line starts, which may be the end of the
// file. Gives up after 1 GiB without a newline: throws DataError if `whole_lines`, else returns
// `offset`, so that the line is broken there.
std::int64_t line_start(const File& file, std::int64_t offset, std::int64_t file_bytes,
                        bool whole_lines);

class LineBlocks {
 public:
  // begin and end are starts of lines. With whole_lines a block never breaks a line, and a line
  // above 1 GiB is a DataError; without it, lines longer than a block are broken.
  LineBlocks(const File& file, std::int64_t begin, std::int64_t end, bool whole_lines);

  struct Block {
    std::int64_t start;     // byte in the file
    std::string_view text;  // valid until the next call of next()
  };
  std::optional<Block> next();

 private:
  void read_more();

  const File& file_;
  std::int64_t position_;  // position in the file of the first byte of buffer_
  std::int64_t read_;      // position up to which the file has been read
  std::int64_t end_;
  bool whole_lines_;
  std::string buffer_;
  std::size_t taken_ = 0;  // bytes of buffer_ that the last next() returned
};

}  // namespace trireme
