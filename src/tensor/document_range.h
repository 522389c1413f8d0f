// A document in a micro-batch, for attention that does not cross documents.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace trireme {

// DocumentRange is a document, or the part of one that lies in a sample: tokens [first, first +
// time) of sample `row` of the micro-batch.
struct DocumentRange {
  std::int64_t row = 0;
  std::int64_t first = 0;
  std::int64_t time = 0;
  friend bool operator==(const DocumentRange&, const DocumentRange&) = default;
};

// The documents of a micro-batch, which cover all of its tokens, in order. Null: each sample is one
// document.
using DocumentRanges = std::shared_ptr<const std::vector<DocumentRange>>;

}  // namespace trireme
