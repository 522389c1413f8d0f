// ByteStream is a sequence of bytes that is read once, from the beginning to the end: a range of a
// file, what a compressed file holds, or a member of an archive. For one thread.
#pragma once

#include <cstdint>

#include "src/base/file.h"

namespace trireme {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Reads up to `bytes` bytes, and at least one unless the stream has ended. Throws DataError if
  // the stream is damaged or ends too early.
  virtual std::int64_t read(char* to, std::int64_t bytes) = 0;
  // Passes over up to `bytes` bytes, and fewer only if the stream ends. Returns their number.
  virtual std::int64_t skip(std::int64_t bytes);
};

// Reads `bytes` bytes, and fewer only if the stream ends. Returns their number.
std::int64_t read_fully(ByteStream& from, char* to, std::int64_t bytes);

// FileRange is the bytes [begin, end) of a file. Borrows the file.
class FileRange final : public ByteStream {
 public:
  FileRange(const File& file, std::int64_t begin, std::int64_t end)
      : file_(file), begin_(begin), position_(begin), end_(end) {}

  // Throws DataError if the file ends before the range does.
  std::int64_t read(char* to, std::int64_t bytes) override;
  std::int64_t skip(std::int64_t bytes) override;
  // Returns the number of bytes that have been read or skipped.
  std::int64_t passed() const { return position_ - begin_; }

 private:
  const File& file_;
  std::int64_t begin_;
  std::int64_t position_;
  std::int64_t end_;
};

}  // namespace trireme
