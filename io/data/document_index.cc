#include "io/data/document_index.h"

#include <algorithm>
#include <cstring>

#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::int64_t kOffsetBytes = sizeof(std::int64_t);
constexpr std::int64_t kEvery = 512;  // offsets of one page

}  // namespace

const std::byte* DocumentIndex::read(std::int64_t first, std::int64_t count,
                                     std::vector<std::byte>& scratch) const {
  return shard_.read(entry_.docs_offset + first * kOffsetBytes, count * kOffsetBytes, scratch);
}

std::vector<std::int64_t> DocumentIndex::offsets() const {
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(entry_.n_docs) + 1);
  check(std::ssize(offsets) * kOffsetBytes == entry_.docs_bytes,
        "the manifest lists the offsets of all documents");
  std::vector<std::byte> scratch;
  std::memcpy(offsets.data(), read(0, std::ssize(offsets), scratch),
              static_cast<std::size_t>(entry_.docs_bytes));
  if (offsets.front() != 0 || offsets.back() != entry_.n_tokens ||
      !std::ranges::is_sorted(offsets)) {
    throw DataError(fmt::format(
        "{}: the document offsets do not ascend from 0 to the number of tokens, {}: pack or "
        "convert the dataset again",
        shard_.path().string(), entry_.n_tokens));
  }
  return offsets;
}

const std::vector<std::int64_t>& DocumentIndex::kept() {
  const std::lock_guard lock(mutex_);
  if (kept_.empty()) {
    const std::vector<std::int64_t> all = offsets();
    for (std::size_t i = 0; i < all.size(); i += kEvery) {
      kept_.push_back(all[i]);
    }
  }
  return kept_;
}

// The last kept offset that is not above `first` comes before all ends that are.
void DocumentIndex::ends(std::int64_t first, std::int64_t count, std::vector<std::int64_t>& to,
                         std::vector<std::byte>& scratch) {
  to.clear();
  const std::vector<std::int64_t>& kept = this->kept();
  const auto above = std::ranges::upper_bound(kept, first);
  std::int64_t last = first;
  for (std::int64_t at = (above - kept.begin() - 1) * kEvery; at <= entry_.n_docs; at += kEvery) {
    const std::int64_t here = std::min(kEvery, entry_.n_docs + 1 - at);
    const std::byte* const raw = read(at, here, scratch);
    for (std::int64_t i = 0; i < here; ++i) {
      std::int64_t end = 0;
      std::memcpy(&end, raw + i * kOffsetBytes, sizeof end);
      if (end > first + count) {
        return;
      }
      if (end > last) {
        to.push_back(end);
        last = end;
      }
    }
  }
}

}  // namespace trireme
