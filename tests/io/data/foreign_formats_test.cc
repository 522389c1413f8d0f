// Tests the files of Megatron-LM and NumPy: golden bytes, and files of strangers.
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <span>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/data/megatron_index.h"
#include "io/data/npy_header.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

// Written by Megatron-LM's own builder: the documents [5, 6, 7] and [8, 9] in u16.
const std::string kMegatronGolden = from_hex(
    "4d4d4944494458000001000000000000000802000000000000000300000000000000030000000200000000000000"
    "000000000600000000000000000000000000000001000000000000000200000000000000");

// Returns the borders of the documents, in tokens.
std::vector<std::int64_t> borders_of(const std::string& idx, std::int64_t bin_bytes,
                                     IntegerType type) {
  const MemoryFile memory(idx);
  const File file = File::open_to_read(memory.path());
  MegatronIndex index(file, bin_bytes);
  index.check_all();
  EXPECT_EQ(index.type(), type);
  EXPECT_EQ(index.tokens(), bin_bytes / type.bytes);
  std::vector<std::int64_t> borders(static_cast<std::size_t>(index.size()));
  index.read(0, index.size(), borders.data());
  return borders;
}

std::string megatron_refusal(const std::string& idx, std::int64_t bin_bytes = 10) {
  const MemoryFile memory(idx);
  const File file = File::open_to_read(memory.path());
  const std::string words =
      message_of<DataError>([&] { MegatronIndex(file, bin_bytes).check_all(); });
  EXPECT_THAT(words, StartsWith(memory.path() + ": "));
  return words;
}

// Returns an index of documents with these lengths, from parts of one and of the other documents.
std::string index_of(const std::vector<std::int64_t>& lengths, int token_bytes) {
  const auto count = std::ssize(lengths);
  std::string index = megatron_header(count, token_bytes);
  index.resize(static_cast<std::size_t>(megatron_documents_at(count + 1, count)));
  const auto put = [&](std::int64_t at, const std::string& part) {
    index.replace(static_cast<std::size_t>(at), part.size(), part);
  };
  std::int64_t token = 0;
  for (std::int64_t first = 0; first < count; first = first == 0 ? 1 : count) {
    const auto some = std::span(lengths).subspan(
        static_cast<std::size_t>(first), static_cast<std::size_t>(first == 0 ? 1 : count - 1));
    const MegatronPart part = megatron_part(some, token, first, token_bytes);
    put(megatron_lengths_at(first), part.lengths);
    put(megatron_offsets_at(first, count), part.offsets);
    put(megatron_documents_at(first, count), part.documents);
    token += std::accumulate(some.begin(), some.end(), std::int64_t{0});
  }
  put(megatron_documents_at(count, count), std::string(1, static_cast<char>(count)));
  return index;
}

// Returns the golden index with a value written over it.
template <class T>
std::string with_value(std::size_t at, T value) {
  std::string changed = kMegatronGolden;
  std::memcpy(changed.data() + at, &value, sizeof value);
  return changed;
}

TEST(MegatronIndex, ReadsAndWritesTheGoldenBytes) {
  EXPECT_THAT(borders_of(kMegatronGolden, 10, {.bytes = 2}), ElementsAre(0, 3, 5));
  EXPECT_EQ(index_of({3, 2}, 2), kMegatronGolden);
  EXPECT_THAT(borders_of(index_of({3, 0, 2}, 4), 20, {.bytes = 4, .is_signed = true}),
              ElementsAre(0, 3, 3, 5));
  const std::vector<std::int64_t> long_document = {std::int64_t{1} << 31};
  EXPECT_THROW((void)megatron_part(long_document, 0, 0, 2), DataError);
}

TEST(MegatronIndex, ReadsAnyPartOfManyDocuments) {
  const std::vector<std::int64_t> lengths(200'000, 3);
  const MemoryFile memory(index_of(lengths, 2).substr(0, 34 + 20 * lengths.size()) +
                          std::string("\x40\x0D\3\0\0\0\0\0", 8));
  const File file = File::open_to_read(memory.path());
  MegatronIndex index(file, 6 * std::ssize(lengths));
  index.check_all();
  for (const std::int64_t first : {0, 70'000, 65'535, 199'998, 5}) {
    std::vector<std::int64_t> borders(3);
    index.read(first, 3, borders.data());
    EXPECT_THAT(borders, ElementsAre(3 * first, 3 * first + 3, 3 * first + 6));
  }
}

TEST(MegatronIndex, RefusesFilesOfStrangers) {
  EXPECT_THAT(megatron_refusal(""), HasSubstr(": this is not an index of Megatron-LM"));
  EXPECT_THAT(megatron_refusal("TNTIDX" + std::string(60, '\0')), HasSubstr("old format"));
  for (std::size_t bytes = 0; bytes < kMegatronGolden.size(); ++bytes) {
    EXPECT_NE(megatron_refusal(kMegatronGolden.substr(0, bytes)), "");
  }
  EXPECT_THAT(megatron_refusal(kMegatronGolden + std::string(2, '\0')),
              HasSubstr("which are not those of"));
  EXPECT_THAT(megatron_refusal(with_value(9, std::uint64_t{2})), HasSubstr("version of the index"));
  for (const int code : {0, 6, 7, 9, 255}) {
    EXPECT_THAT(megatron_refusal(with_value(17, static_cast<std::uint8_t>(code))),
                HasSubstr(fmt::format("type {}", code)));
  }
  for (const std::uint64_t count : {std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{3}}) {
    EXPECT_THAT(megatron_refusal(with_value(18, count)), HasSubstr("sequences and"));
    EXPECT_THAT(megatron_refusal(with_value(26, count + 1)), HasSubstr("sequences and"));
  }
  EXPECT_THAT(megatron_refusal(with_value(34, std::int32_t{-3})), HasSubstr("has the length -3"));
  EXPECT_THAT(megatron_refusal(with_value(34, std::int32_t{2})), HasSubstr("begins at byte 6"));
  EXPECT_THAT(megatron_refusal(with_value(42, std::int64_t{2})), HasSubstr("begins at byte 2"));
  EXPECT_THAT(megatron_refusal(kMegatronGolden, 8), HasSubstr("take 10 bytes"));
  EXPECT_THAT(megatron_refusal(with_value(58, std::int64_t{1})), HasSubstr("document border 0"));
  EXPECT_THAT(megatron_refusal(with_value(66, std::int64_t{-1})), HasSubstr("document border 1"));
  EXPECT_THAT(megatron_refusal(with_value(74, std::int64_t{1})), HasSubstr("last document border"));
}

std::string npy(const std::string& dictionary, char major = 1) {
  std::string text = "\x93NUMPY";
  text += major;
  text += '\0';
  text += static_cast<char>(dictionary.size());
  text += static_cast<char>(dictionary.size() >> 8);
  return text + (major == 1 ? "" : std::string(2, '\0')) + dictionary;
}

std::string npy_refusal(const std::string& head, std::int64_t data_bytes = 6) {
  return message_of<DataError>(
      [&] { (void)parse_npy_header(head, std::ssize(head) + data_bytes, "x.npy"); });
}

TEST(NpyHeader, ReadsAndWritesWhatNumPyWrites) {
  // numpy.save() of numpy.array([1, 2, 3], "<u2")
  const std::string golden = npy("{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }" +
                                 std::string(60, ' ') + "\n");
  ASSERT_EQ(golden.size(), 128U);
  const NpyHeader header = parse_npy_header(golden, 128 + 6, "x");
  EXPECT_EQ(header.type, (IntegerType{.bytes = 2}));
  EXPECT_THAT(header.shape, ElementsAre(3));
  EXPECT_EQ(header.data_offset, 128);
  EXPECT_EQ(npy_header_text(3, {.bytes = 2}), golden);
  const IntegerType big = {.bytes = 8, .is_signed = true, .is_big_endian = true};
  const std::string largest = npy_header_text(std::numeric_limits<std::int64_t>::max() / 8, big);
  EXPECT_EQ(std::ssize(largest), kNpyHeaderBytes);
  EXPECT_EQ(parse_npy_header(npy_header_text(7, big), kNpyHeaderBytes + 56, "x").type, big);
  EXPECT_FALSE(header.is_column_major);
  const std::string two = npy("{\"shape\":(2, 3),'fortran_order':False,'descr':'|u1'}", 2);
  const NpyHeader other = parse_npy_header(two, std::ssize(two) + 6, "x");
  EXPECT_THAT(other.shape, ElementsAre(2, 3));
  EXPECT_EQ(other.data_offset, std::ssize(two));
}

TEST(NpyHeader, RefusesFilesOfStrangers) {
  const std::string good = "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }\n";
  EXPECT_EQ(parse_npy_header(npy(good), std::ssize(npy(good)) + 6, "x").elements(), 3);
  EXPECT_THAT(npy_refusal(npy(good), 5), HasSubstr("claims elements of 2 bytes"));
  EXPECT_THAT(npy_refusal(npy(good), 8), HasSubstr("claims elements"));
  EXPECT_THAT(npy_refusal(npy(good, 9)), HasSubstr("version of the format is 9"));
  EXPECT_THAT(npy_refusal("PK\3\4 and more"), HasSubstr("not an array of NumPy"));
  for (std::size_t bytes = 0; bytes < npy(good).size(); ++bytes) {
    EXPECT_THAT(npy_refusal(npy(good).substr(0, bytes)), StartsWith("x.npy: "));
  }
  for (const auto& [dictionary, words] : std::vector<std::pair<std::string, std::string>>{
           {"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", "type '|O'"},
           {"{'descr': '=u2', 'fortran_order': False, 'shape': (3,), }", "type '=u2'"},
           {"{'descr': '|u2', 'fortran_order': False, 'shape': (3,), }", "type '|u2'"},
           {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "type '<f4'"},
           {"{'descr': [('a', '<u2')], 'fortran_order': False, 'shape': (3,), }", "dictionary"},
           {"{'descr': '<u2', 'fortran_order': 1, 'shape': (3,), }", "neither True nor False"},
           {"{'descr': '<u2', 'fortran_order': False}", "dictionary of 'descr'"},
           {"{'descr': '<u2', 'descr': '<u2', 'shape': (3,), }", "'descr' twice"},
           {"{'descr': '<u2', 'fortran_order': False, 'shape': (-3,), }", "list of up to 32"},
           {"{'descr': '<u2', 'fortran_order': False, 'shape': (9223372036854775807, 4), }",
            "claims elements"},
           {"{'descr': '<u2', 'fortran_order': False, 'shape': (99999999999999999999,), }",
            "list of up to 32"},
           {"{'descr': '<u2', 'fortran_order': False, 'shape': (3), }", "not a tuple"},
           {"{'descr': '<u2', 'fortran_order': False, 'shape': (3,)} import os", "dictionary"},
           {"{'descr': '<u2', 'x': False, 'shape': (3,), }", "unknown key 'x'"},
           {"{'descr", "dictionary"},
           {"", "no '{'"}}) {
    EXPECT_THAT(npy_refusal(npy(dictionary)), HasSubstr(words)) << dictionary;
  }
}

TEST(PlainArray, ReadsEveryType) {
  const TempFolder folder;
  const std::string bytes = from_hex("aaffff01807f000000");
  std::ofstream(folder.path() / "x", std::ios::binary) << bytes;
  const File file = File::open_to_read(folder.path() / "x");
  const auto values = [&](IntegerType type, std::int64_t elements) {
    PlainArray array(file, 1, type, elements);
    std::vector<std::int64_t> read(static_cast<std::size_t>(elements));
    array.read(0, elements, read.data());
    return read;
  };
  EXPECT_THAT(values({.bytes = 1}, 2), ElementsAre(255, 255));
  EXPECT_THAT(values({.bytes = 1, .is_signed = true}, 2), ElementsAre(-1, -1));
  EXPECT_THAT(values({.bytes = 2}, 2), ElementsAre(65535, 0x8001));
  EXPECT_THAT(values({.bytes = 2, .is_signed = true}, 2), ElementsAre(-1, -32767));
  EXPECT_THAT(values({.bytes = 4, .is_signed = true}, 2),
              ElementsAre(static_cast<std::int32_t>(0x8001FFFFU), 127));
  EXPECT_THAT(values({.bytes = 8}, 1), ElementsAre(0x7F8001FFFF));
  EXPECT_THAT(values({.bytes = 2, .is_big_endian = true}, 2), ElementsAre(65535, 0x0180));
  EXPECT_THAT(values({.bytes = 4, .is_signed = true, .is_big_endian = true}, 1),
              ElementsAre(static_cast<std::int32_t>(0xFFFF0180U)));
  EXPECT_THROW((void)values({.bytes = 8}, 2), DataError) << "the file ends";
}

TEST(ColumnMajorMatrix, GivesAnyPartOfItsRows) {
  // The matrix 0 1 2, 10 11 12, 20 21 22, 30 31 32 by columns.
  const MemoryFile memory(std::string("\0\xA\x14\x1E\1\xB\x15\x1F\2\xC\x16\x20", 12));
  const File file = File::open_to_read(memory.path());
  const std::vector<std::int64_t> rows = {0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32};
  ColumnMajorMatrix matrix(PlainArray(file, 0, {.bytes = 1}, 12), 4, 3);
  ASSERT_EQ(matrix.size(), 12);
  for (std::int64_t first = 0; first <= 12; ++first) {
    for (std::int64_t count = 0; first + count <= 12; ++count) {
      std::vector<std::int64_t> read(static_cast<std::size_t>(count));
      matrix.read(first, count, read.data());
      EXPECT_THAT(read,
                  testing::ElementsAreArray(rows.begin() + first, rows.begin() + first + count));
    }
  }
}

}  // namespace
}  // namespace trireme
