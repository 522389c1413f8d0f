#include "io/data/megatron_index.h"

#include <algorithm>
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
constexpr std::int64_t kLengthBytes = 4;
constexpr std::int64_t kPointerBytes = 8;
constexpr std::int64_t kBlockNumbers = std::int64_t{1} << 16;
constexpr std::uint8_t kTypeOfI32 = 4;
constexpr std::uint8_t kTypeOfU16 = 8;

// The types of integers, by their codes; 0 bytes for others.
constexpr std::array<IntegerType, 9> kTypes = {{{},
                                                {.bytes = 1},
                                                {.bytes = 1, .is_signed = true},
                                                {.bytes = 2, .is_signed = true},
                                                {.bytes = 4, .is_signed = true},
                                                {.bytes = 8, .is_signed = true},
                                                {},
                                                {},
                                                {.bytes = 2}}};

template <class T>
T value_at(std::string_view bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
void append_value(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Calls take(index, value) for each element of an array.
template <class Take>
void for_each_number(PlainArray array, Take take) {
  std::vector<std::int64_t> block;
  for (std::int64_t at = 0; at < array.size(); at += kBlockNumbers) {
    block.resize(static_cast<std::size_t>(std::min(kBlockNumbers, array.size() - at)));
    array.read(at, std::ssize(block), block.data());
    for (std::size_t i = 0; i < block.size(); ++i) {
      take(at + static_cast<std::int64_t>(i), block[i]);
    }
  }
}

constexpr IntegerType kLengthType = {.bytes = 4, .is_signed = true};
constexpr IntegerType kOffsetType = {.bytes = 8, .is_signed = true};

}  // namespace

std::int64_t megatron_lengths_at(std::int64_t number) {
  return kHeaderBytes + kLengthBytes * number;
}

std::int64_t megatron_offsets_at(std::int64_t number, std::int64_t documents) {
  return megatron_lengths_at(documents) + kPointerBytes * number;
}

std::int64_t megatron_documents_at(std::int64_t number, std::int64_t documents) {
  return megatron_offsets_at(documents, documents) + kPointerBytes * number;
}

MegatronIndex::MegatronIndex(const File& idx, std::int64_t bin_bytes)
    : idx_(idx), bin_bytes_(bin_bytes) {
  std::string head(static_cast<std::size_t>(kHeaderBytes), '\0');
  const std::int64_t got = idx_.read_at(0, head.data(), kHeaderBytes);
  if (head.starts_with(kOldMagic)) {
    fail(
        "this is an index of an old format of fairseq (TNTIDX): write the dataset again with "
        "Megatron-LM's tools");
  }
  if (got < kHeaderBytes || !head.starts_with(kMegatronMagic)) {
    fail("this is not an index of Megatron-LM: it does not begin with MMIDIDX");
  }
  if (const auto version = value_at<std::uint64_t>(head, 9); version != kMegatronVersion) {
    fail(fmt::format("the version of the index is {}, and only {} is known", version,
                     kMegatronVersion));
  }
  const auto code = value_at<std::uint8_t>(head, 17);
  if (code >= kTypes.size() || kTypes.at(code).bytes == 0) {
    fail(fmt::format("the tokens have the type {}, which is not one of integers", code));
  }
  type_ = kTypes.at(code);
  const auto sequences = value_at<std::uint64_t>(head, 18);
  const auto documents = value_at<std::uint64_t>(head, 26);
  // Compared by division: the numbers may be as large as 2^64.
  const auto room = static_cast<std::uint64_t>(idx_.size() - kHeaderBytes);
  constexpr std::uint64_t kSequenceBytes = kLengthBytes + kPointerBytes;
  if (sequences > room / kSequenceBytes || documents > room / kPointerBytes ||
      sequences * kSequenceBytes + documents * kPointerBytes != room) {
    fail(
        fmt::format("the index has {} bytes, which are not those of {} sequences and {} document "
                    "borders: it is cut off, or has modes of several media",
                    idx_.size(), sequences, documents));
  }
  sequences_ = static_cast<std::int64_t>(sequences);
  documents_ = static_cast<std::int64_t>(documents);
}

void MegatronIndex::fail(const std::string& what) const {
  throw DataError(fmt::format("{}: {}", idx_.path().string(), what));
}

void MegatronIndex::check_all() const {
  check_sequences();
  check_documents();
}

void MegatronIndex::check_sequences() const {
  PlainArray offsets(idx_, megatron_offsets_at(0, sequences_), kOffsetType, sequences_);
  std::vector<std::int64_t> block;
  std::int64_t end = 0;  // in bytes: at most 2^31 tokens of 8 bytes for each 12 bytes of the index
  for_each_number(
      PlainArray(idx_, megatron_lengths_at(0), kLengthType, sequences_),
      [&](std::int64_t s, std::int64_t length) {
        if (s % kBlockNumbers == 0) {
          block.resize(static_cast<std::size_t>(std::min(kBlockNumbers, sequences_ - s)));
          offsets.read(s, std::ssize(block), block.data());
        }
        if (length < 0) {
          fail(fmt::format("sequence {} has the length {}", s, length));
        }
        if (const auto offset = block[static_cast<std::size_t>(s % kBlockNumbers)]; offset != end) {
          fail(fmt::format("sequence {} begins at byte {}, but the one before it ends at byte {}",
                           s, offset, end));
        }
        end += length * type_.bytes;
      });
  if (end != bin_bytes_) {
    fail(
        fmt::format("the sequences take {} bytes, but the .bin file beside it has {}: one of them "
                    "is cut off or belongs to another",
                    end, bin_bytes_));
  }
}

void MegatronIndex::check_documents() const {
  std::int64_t before = 0;
  for_each_number(PlainArray(idx_, megatron_documents_at(0, sequences_), kOffsetType, documents_),
                  [&](std::int64_t d, std::int64_t sequence) {
                    if (sequence < before || sequence > sequences_ || (d == 0 && sequence != 0)) {
                      fail(fmt::format(
                          "document border {} is sequence {}: expected rising numbers from 0 to {}",
                          d, sequence, sequences_));
                    }
                    before = sequence;
                  });
  if (documents_ == 0 || before != sequences_) {
    fail(fmt::format("the last document border is sequence {}, and there are {} sequences", before,
                     sequences_));
  }
}

std::int64_t MegatronIndex::offset_of(std::int64_t sequence) {
  if (sequence == sequences_) {
    return bin_bytes_;
  }
  if (sequence < block_begin_ || sequence >= block_begin_ + std::ssize(block_)) {
    block_begin_ = sequence;
    block_.resize(static_cast<std::size_t>(std::min(kBlockNumbers, sequences_ - sequence)));
    PlainArray(idx_, megatron_offsets_at(0, sequences_), kOffsetType, sequences_)
        .read(sequence, std::ssize(block_), block_.data());
  }
  return block_[static_cast<std::size_t>(sequence - block_begin_)];
}

void MegatronIndex::read(std::int64_t first, std::int64_t count, std::int64_t* to) {
  PlainArray(idx_, megatron_documents_at(0, sequences_), kOffsetType, documents_)
      .read(first, count, to);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t sequence = to[i];
    const std::int64_t offset = sequence < 0 || sequence > sequences_ ? -1 : offset_of(sequence);
    if (offset < 0 || offset > bin_bytes_) {
      fail(fmt::format("document border {} is sequence {}, which is not in the .bin file",
                       first + i, sequence));
    }
    to[i] = offset / type_.bytes;
  }
}

std::string megatron_header(std::int64_t documents, int token_bytes) {
  check(token_bytes == 2 || token_bytes == 4, "tokens have 2 or 4 bytes");
  std::string text(kMegatronMagic);
  append_value(text, kMegatronVersion);
  append_value(text, token_bytes == 2 ? kTypeOfU16 : kTypeOfI32);
  append_value(text, static_cast<std::uint64_t>(documents));
  append_value(text, static_cast<std::uint64_t>(documents + 1));
  return text;
}

MegatronPart megatron_part(std::span<const std::int64_t> lengths, std::int64_t first_token,
                           std::int64_t first_document, int token_bytes) {
  MegatronPart part;
  std::int64_t token = first_token;
  std::int64_t document = first_document;
  for (const std::int64_t length : lengths) {
    if (length > std::numeric_limits<std::int32_t>::max()) {
      throw DataError(fmt::format(
          "document {} has {} tokens, and Megatron-LM's format allows 2^31 - 1", document, length));
    }
    append_value(part.lengths, static_cast<std::int32_t>(length));
    append_value(part.offsets, token * token_bytes);
    append_value(part.documents, document);
    token += length;
    ++document;
  }
  return part;
}

}  // namespace trireme
