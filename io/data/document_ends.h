// DocumentEnds says where the documents of a foreign file end. The file holds n + 1 offsets for n
// documents: 0, then the end of each document in tokens; the last offset is the number of tokens. A
// document is empty if its two offsets are equal. Offsets are read in blocks, so memory is bounded.
// Borrows the array; for one thread.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "io/data/foreign_array.h"

namespace trireme {

// Throws DataError, whose message begins with `where`, unless the offsets ascend from 0 to
// `tokens`.
void check_offsets(ForeignArray& offsets, std::int64_t tokens, const std::string& where);

// Iterates over the document ends that follow a given token.
class DocumentEnds {
 public:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  // offsets: validated by check_offsets(). Null means that no document ends before the file does.
  DocumentEnds(ForeignArray* offsets, std::int64_t after);

  // Returns the first end after all tokens that have been passed, or kNone after the last end.
  std::int64_t next() const { return next_; }
  void pass(std::int64_t token);

 private:
  ForeignArray* offsets_;
  std::int64_t position_ = 0;  // of next_ among the offsets
  std::vector<std::int64_t> block_;
  std::int64_t block_begin_ = 0;
  std::int64_t next_ = kNone;

  std::int64_t at(std::int64_t index);
};

}  // namespace trireme
