#include "io/data/megatron_index.h"

#include <array>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::string_view kMegatronMagic{"MMIDIDX\0\0", 9};
constexpr std::string_view kOldMagic{"TNTIDX\0\0", 8};
constexpr std::uint64_t kMegatronVersion = 1;
constexpr std::int64_t kHeaderBytes = 34;
constexpr std::int64_t kSequenceBytes = 4 + 8;  // of a length and an offset

// The types of integers, by their codes; 0 bytes for others.
constexpr std::array<IntegerType, 9> kTypes = {{{0, false},
                                                {1, false},
                                                {1, true},
                                                {2, true},
                                                {4, true},
                                                {8, true},
                                                {0, false},
                                                {0, false},
                                                {2, false}}};

template <class T>
T value_at(std::string_view bytes, std::int64_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
void append_value(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// IndexReader checks one index.
class IndexReader {
 public:
  IndexReader(std::string_view idx, std::int64_t bin_bytes, const std::string& name)
      : idx_(idx), bin_bytes_(bin_bytes), name_(name) {}

  MegatronIndex read() {
    read_header();
    const std::vector<std::int64_t> ends = sequence_ends();
    read_documents(ends);
    return std::move(index_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}: {}", name_, what));
  }

  void read_header() {
    if (idx_.starts_with(kOldMagic)) {
      fail(
          "this is an index of an old format of fairseq (TNTIDX): write the dataset again with "
          "Megatron-LM's tools");
    }
    if (std::ssize(idx_) < kHeaderBytes || !idx_.starts_with(kMegatronMagic)) {
      fail("this is not an index of Megatron-LM: it does not begin with MMIDIDX");
    }
    if (const auto version = value_at<std::uint64_t>(idx_, 9); version != kMegatronVersion) {
      fail(fmt::format("the version of the index is {}, and only {} is known", version,
                       kMegatronVersion));
    }
    const auto code = value_at<std::uint8_t>(idx_, 17);
    if (code >= kTypes.size() || kTypes.at(code).bytes == 0) {
      fail(fmt::format("the tokens have the type {}, which is not one of integers", code));
    }
    index_.type = kTypes.at(code);
    const auto sequences = value_at<std::uint64_t>(idx_, 18);
    const auto documents = value_at<std::uint64_t>(idx_, 26);
    // Compared by division: the numbers may be as large as 2^64.
    const auto room = static_cast<std::uint64_t>(std::ssize(idx_) - kHeaderBytes);
    if (sequences > room / kSequenceBytes || documents > room / 8 ||
        sequences * kSequenceBytes + documents * 8 != room) {
      fail(
          fmt::format("the index has {} bytes, which are not those of {} sequences and {} document "
                      "borders: it is cut off, or has modes of several media",
                      idx_.size(), sequences, documents));
    }
    sequences_ = static_cast<std::int64_t>(sequences);
    documents_ = static_cast<std::int64_t>(documents);
  }

  // Returns 0, then where each sequence ends, in tokens.
  std::vector<std::int64_t> sequence_ends() {
    std::vector<std::int64_t> ends = {0};
    ends.reserve(static_cast<std::size_t>(sequences_) + 1);
    const std::int64_t offsets = kHeaderBytes + 4 * sequences_;
    for (std::int64_t s = 0; s < sequences_; ++s) {
      const auto length = value_at<std::int32_t>(idx_, kHeaderBytes + 4 * s);
      const auto offset = value_at<std::int64_t>(idx_, offsets + 8 * s);
      if (length < 0) {
        fail(fmt::format("sequence {} has the length {}", s, length));
      }
      // At most 2^31 tokens of 8 bytes for each 12 bytes of the index: far from 2^63.
      if (offset != ends.back() * index_.type.bytes) {
        fail(fmt::format("sequence {} begins at byte {}, but the one before it ends at byte {}", s,
                         offset, ends.back() * index_.type.bytes));
      }
      ends.push_back(ends.back() + length);
    }
    index_.tokens = ends.back();
    if (index_.tokens * index_.type.bytes != bin_bytes_) {
      fail(
          fmt::format("the sequences take {} bytes, but the .bin file beside it has {}: one of "
                      "them is cut off or belongs to another",
                      index_.tokens * index_.type.bytes, bin_bytes_));
    }
    return ends;
  }

  void read_documents(const std::vector<std::int64_t>& ends) {
    const std::int64_t first = kHeaderBytes + kSequenceBytes * sequences_;
    std::int64_t before = 0;
    for (std::int64_t d = 0; d < documents_; ++d) {
      const auto sequence = value_at<std::int64_t>(idx_, first + 8 * d);
      if (sequence < before || sequence > sequences_ || (d == 0 && sequence != 0)) {
        fail(fmt::format("document border {} is sequence {}: expected rising numbers from 0 to {}",
                         d, sequence, sequences_));
      }
      index_.documents.push_back(ends[static_cast<std::size_t>(sequence)]);
      before = sequence;
    }
    if (documents_ == 0 || before != sequences_) {
      fail(fmt::format("the last document border is sequence {}, and there are {} sequences",
                       before, sequences_));
    }
  }

  std::string_view idx_;
  std::int64_t bin_bytes_;
  const std::string& name_;
  std::int64_t sequences_ = 0;
  std::int64_t documents_ = 0;
  MegatronIndex index_;
};

}  // namespace

MegatronIndex parse_megatron_index(std::string_view idx, std::int64_t bin_bytes,
                                   const std::string& name) {
  return IndexReader(idx, bin_bytes, name).read();
}

std::string megatron_index_text(const std::vector<std::int64_t>& lengths, int token_bytes) {
  check(token_bytes == 2 || token_bytes == 4, "tokens have 2 or 4 bytes");
  std::string text(kMegatronMagic);
  append_value(text, kMegatronVersion);
  append_value(text, static_cast<std::uint8_t>(token_bytes == 2 ? 8 : 4));
  append_value(text, static_cast<std::uint64_t>(lengths.size()));
  append_value(text, static_cast<std::uint64_t>(lengths.size() + 1));
  for (const std::int64_t length : lengths) {
    if (length > std::numeric_limits<std::int32_t>::max()) {
      throw DataError(fmt::format(
          "a document has {} tokens, and Megatron-LM's format allows 2^31 - 1", length));
    }
    append_value(text, static_cast<std::int32_t>(length));
  }
  std::int64_t offset = 0;
  for (const std::int64_t length : lengths) {
    append_value(text, offset);
    offset += length * token_bytes;
  }
  for (std::int64_t d = 0; d <= std::ssize(lengths); ++d) {
    append_value(text, d);
  }
  return text;
}

}  // namespace trireme
