#include "io/data/document_ends.h"

#include <algorithm>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::int64_t kBlockOffsets = std::int64_t{1} << 16;

}  // namespace

void check_offsets(ForeignArray& offsets, std::int64_t tokens, const std::string& where) {
  const auto fail = [&](const std::string& what) {
    throw DataError(fmt::format(
        "{} {}; expected ascending offsets from 0 to the number of tokens, {}: repair them, or "
        "name others with --offsets",
        where, what, tokens));
  };
  std::vector<std::int64_t> block;
  std::int64_t before = 0;
  for (std::int64_t at = 0; at < offsets.size(); at += kBlockOffsets) {
    block.resize(static_cast<std::size_t>(std::min(kBlockOffsets, offsets.size() - at)));
    offsets.read(at, static_cast<std::int64_t>(block.size()), block.data());
    if (at == 0 && block.front() != 0) {
      fail(fmt::format("starts with {}", integer_text(block.front())));
    }
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::int64_t index = at + static_cast<std::int64_t>(i);
      if (block[i] < before) {
        fail(
            fmt::format("[{}] is {}, less than the offset before it, {}", index, block[i], before));
      }
      if (block[i] > tokens) {
        fail(fmt::format("[{}] is {}, which lies beyond the end of the tokens", index,
                         integer_text(block[i])));
      }
      before = block[i];
    }
  }
  if (offsets.size() == 0 || before != tokens) {
    fail(offsets.size() == 0 ? "is empty" : fmt::format("ends with {}", before));
  }
}

DocumentEnds::DocumentEnds(ForeignArray* offsets, std::int64_t after) : offsets_(offsets) {
  if (offsets_ == nullptr) {
    return;
  }
  std::int64_t above = offsets_->size();
  while (position_ < above) {
    const std::int64_t middle = position_ + (above - position_) / 2;
    std::int64_t value = 0;
    offsets_->read(middle, 1, &value);
    if (value > after) {
      above = middle;
    } else {
      position_ = middle + 1;
    }
  }
  next_ = at(position_);
}

void DocumentEnds::pass(std::int64_t token) {
  while (next_ <= token) {
    next_ = at(++position_);
  }
}

std::int64_t DocumentEnds::at(std::int64_t index) {
  if (index >= offsets_->size()) {
    return kNone;
  }
  if (block_.empty() || index >= block_begin_ + static_cast<std::int64_t>(block_.size())) {
    block_.resize(static_cast<std::size_t>(std::min(kBlockOffsets, offsets_->size() - index)));
    block_begin_ = index;
    offsets_->read(index, static_cast<std::int64_t>(block_.size()), block_.data());
  }
  return block_[static_cast<std::size_t>(index - block_begin_)];
}

}  // namespace trireme
