#include "io/data/pack_plan.h"

#include <algorithm>
#include <cmath>

#include "src/base/check.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/philox.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

// Pieces of jsonl are read whole, however few of their documents are taken. This bounds how much a
// shard has to read.
constexpr double kLeastShare = 1.0 / 64;

// Text is compressed to about a quarter. The shards of a plan need only be about as large as asked.
constexpr double kExpansion = 4;

// Fills one shard after another.
class Planner {
 public:
  explicit Planner(std::int64_t capacity) : capacity_(capacity) {
    check(capacity > 0, "the capacity of a shard is positive");
  }

  // Starts a new shard if the file does not fit into this one but fits into an empty one.
  void add_whole(std::size_t file, std::int64_t bytes) {
    if (bytes > left() && bytes <= capacity_) {
      next_shard();
    }
    add_cut(file, bytes, 1);
  }

  // Cuts the file wherever a shard is full. weight: the share of the file's bytes that is expected
  // to be taken.
  void add_cut(std::size_t file, std::int64_t bytes, double weight) {
    std::int64_t begin = 0;
    while (begin < bytes) {
      const auto room = std::max<std::int64_t>(
          static_cast<std::int64_t>(static_cast<double>(left()) / weight), 1);
      const std::int64_t end = begin + std::min(room, bytes - begin);
      shards_.back().pieces.push_back({file, begin, end});
      used_ += static_cast<std::int64_t>(std::ceil(static_cast<double>(end - begin) * weight));
      begin = end;
      if (left() <= 0) {
        next_shard();
      }
    }
  }

  // Never cuts the file. weight: the expected size of the text that is taken from it, for each of
  // its bytes.
  void add_stream(std::size_t file, std::int64_t bytes, double weight) {
    const auto expected = static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes) * weight));
    if (expected > left()) {
      next_shard();
    }
    shards_.back().pieces.push_back({file, 0, bytes});
    used_ += expected;
    if (left() <= 0) {
      next_shard();
    }
  }

  std::vector<TextShard> take() {
    if (shards_.back().pieces.empty()) {
      shards_.pop_back();
    }
    return std::move(shards_);
  }

 private:
  std::int64_t left() const { return capacity_ - used_; }
  void next_shard() {
    if (!shards_.back().pieces.empty()) {
      shards_.emplace_back();
    }
    used_ = 0;
  }

  std::int64_t capacity_;
  std::int64_t used_ = 0;
  std::vector<TextShard> shards_ = std::vector<TextShard>(1);
};

}  // namespace

double Selection::position(std::string_view name, std::int64_t start) {
  const std::uint64_t random = mix64(xxh3(name.data(), static_cast<std::int64_t>(name.size())) ^
                                     mix64(static_cast<std::uint64_t>(start)));
  return static_cast<double>(random >> 11) * 0x1p-53;
}

bool Selection::takes(std::string_view name, std::int64_t start) const {
  if (part == Part::all) {
    return true;
  }
  const bool validation = position(name, start) < validation_fraction;
  return validation == (part == Part::validation);
}

double Selection::share() const {
  switch (part) {
    case Part::train:
      return 1 - validation_fraction;
    case Part::validation:
      return validation_fraction;
    case Part::all:
      return 1;
  }
  return 1;
}

std::int64_t TextShard::input_bytes() const {
  std::int64_t sum = 0;
  for (const TextPiece& piece : pieces) {
    sum += piece.end - piece.begin;
  }
  return sum;
}

std::vector<TextShard> plan_shards(const std::vector<InputFile>& files, const Selection& selection,
                                   std::int64_t text_bytes) {
  Planner planner(text_bytes);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const InputFile& file = files[i];
    const double expansion = file.compression() == Compression::none ? 1 : kExpansion;
    const double share = std::max(selection.share(), kLeastShare);
    if (file.bytes == 0) {
      if (file.is_archive() || file.compression() != Compression::none) {
        throw DataError(fmt::format(
            "{}: the file is empty, as no compressed file or archive is: copy or download it again",
            printable(file.path)));
      }
      continue;
    }
    if (file.is_archive() || (file.is_jsonl() && file.compression() != Compression::none)) {
      planner.add_stream(i, file.bytes, share * expansion);
    } else if (file.is_jsonl()) {
      planner.add_cut(i, file.bytes, share);
    } else if (!selection.takes(file.name_of_text(), 0)) {
      continue;
    } else if (file.is_plain_text()) {
      planner.add_whole(i, file.bytes);
    } else {
      planner.add_stream(i, file.bytes, expansion);
    }
  }
  return planner.take();
}

std::vector<TextShard> plan_reading(const std::vector<InputFile>& files, std::int64_t unit_bytes) {
  Planner planner(unit_bytes);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const bool is_compressed = files[i].compression() != Compression::none;
    if (files[i].bytes > 0 && files[i].is_jsonl() && !is_compressed) {
      planner.add_cut(i, files[i].bytes, 1);
    } else if (files[i].bytes > 0) {
      planner.add_stream(i, files[i].bytes, is_compressed ? kExpansion : 1);
    }
  }
  return planner.take();
}

}  // namespace trireme
