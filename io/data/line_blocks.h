// LineBlocks reads a stream of text block by block, in bounded memory. Borrows the stream; for one
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/archive/byte_stream.h"
#include "src/base/file.h"

namespace trireme {

// Returns the first byte at or after `offset` where a line starts, which may be the end of the
// file. Gives up after 1 GiB without a newline: throws DataError if `whole_lines`, else returns
// `offset`, so that the line is broken there.
std::int64_t line_start(const File& file, std::int64_t offset, std::int64_t file_bytes,
                        bool whole_lines);

class LineBlocks {
 public:
  // The stream begins with a line. With whole_lines a block never breaks a line, and a line above
  // 1 GiB is a DataError; without it, lines longer than a block are broken. name: of the stream,
  // for messages.
  LineBlocks(ByteStream& from, std::string name, bool whole_lines);

  struct Block {
    std::int64_t start;     // byte in the stream
    std::string_view text;  // valid until the next call of next()
  };
  std::optional<Block> next();

 private:
  void read_more();

  ByteStream& from_;
  std::string name_;
  std::int64_t position_ = 0;  // position in the stream of the first byte of buffer_
  bool has_ended_ = false;
  bool whole_lines_;
  std::string buffer_;
  std::size_t taken_ = 0;  // bytes of buffer_ that the last next() returned
};

}  // namespace trireme
