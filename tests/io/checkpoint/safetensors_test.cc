#include "io/checkpoint/safetensors.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/philox.h"

namespace trireme {
namespace {

using testing::HasSubstr;

// The reference implementation has made this header: a = F32 [2,2], b = BF16 [3].
constexpr std::string_view kGoldenJson =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
    R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]}})";

std::string with_length(std::string_view header) {
  const std::uint64_t n = header.size();
  std::string head(8, '\0');
  std::memcpy(head.data(), &n, 8);
  return head + std::string(header);
}

std::string fault_of(const std::string& header, std::int64_t data_bytes = 22) {
  const std::string head = with_length(header);
  try {
    parse_safetensors_header(head, static_cast<std::int64_t>(head.size()) + data_bytes);
    return "";
  } catch (const DataError& e) {
    return e.what();
  }
}

std::string changed(const std::string& from, const std::string& to) {
  std::string header(kGoldenJson);
  const std::size_t at = header.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return header.replace(at, from.size(), to);
}

TEST(Safetensors, ReadsWhatTheReferenceWrites) {
  const std::string head = with_length(kGoldenJson) + " ";
  std::string padded = head;
  padded[0] = static_cast<char>(kGoldenJson.size() + 1);
  const SafetensorsHeader header =
      parse_safetensors_header(padded, static_cast<std::int64_t>(padded.size()) + 22);
  ASSERT_EQ(header.entries.size(), 2U);
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_EQ(header.entries[0].name, "a");
  EXPECT_EQ(header.entries[0].shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(header.entries[1].dtype, DType::bf16);
  EXPECT_EQ(header.entries[1].end, 22);
  EXPECT_EQ(header.data_offset, static_cast<std::int64_t>(padded.size()));
}

TEST(Safetensors, ReadsWhatItWrites) {
  const std::vector<SafetensorsEntry> entries = {{"x\"\n", DType::f32, {2}, 0, 8},
                                                 {"empty", DType::f32, {0, 3}, 8, 8},
                                                 {"scalar", DType::u8, {}, 8, 9}};
  const std::string head = encode_safetensors_header({{"format", "pt"}}, entries, 4096);
  EXPECT_EQ(head.size(), 4096U);
  const SafetensorsHeader header = parse_safetensors_header(head, 4096 + 9);
  EXPECT_EQ(header.entries, entries);
}

TEST(Safetensors, ReadsTruthValuesAsBytes) {
  const std::string text = R"({"mask":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})";
  std::string head(8, '\0');
  head[0] = static_cast<char>(text.size());
  head += text;
  const SafetensorsHeader header =
      parse_safetensors_header(head, static_cast<std::int64_t>(head.size()) + 3);
  EXPECT_EQ(header.entries.front(), (SafetensorsEntry{"mask", DType::u8, {3}, 0, 3}));
}

TEST(Safetensors, RefusesWhatTheReferenceRefuses) {
  EXPECT_EQ(fault_of(std::string(kGoldenJson)), "");
  const std::vector<std::array<const char*, 3>> cases = {
      {"[16,22]", "[17,23]", "a gap or an overlap"},
      {"[16,22]", "[8,14]", "a gap or an overlap"},
      {"[0,16]", "[16,0]", "do not span"},
      {"[0,16]", "[0,15]", "do not span"},
      {"[0,16]", "[0]", "not a pair"},
      {"[0,16]", "[-1,15]", "data_offsets"},
      {"[0,16]", "[0,16.0]", "data_offsets"},
      {"[2,2]", "[4294967296,4294967296]", "overflow"},
      {"[2,2]", "[2,3]", "do not span"},
      {"\"shape\":[2,2]", "\"shape\":4", "'shape'"},
      {"\"F32\"", "\"F33\"", "F33"},
      {"\"dtype\":\"F32\",", "", "'dtype' is missing"},
      {"\"pt\"", "7", "'format'"},
      {"\"b\":", "\"a\":", "twice"},
      {"\"shape\":[2,2]", "\"shape\":[2,2],\"shape\":[2,2]", "twice"},
      {"{\"__meta", " {\"__meta", "does not start with"},
      {"}}", "}", "not JSON"}};
  for (const auto& [from, to, said] : cases) {
    EXPECT_THAT(fault_of(changed(from, to)), HasSubstr(said)) << from << " -> " << to;
  }
  EXPECT_THAT(fault_of(std::string(kGoldenJson), 23), HasSubstr("holds 23 bytes of data"));
  EXPECT_THAT(fault_of(std::string(kGoldenJson), 21), HasSubstr("holds 21 bytes of data"));
  EXPECT_NE(fault_of("{\"a\xff\":{}}"), "");
  EXPECT_THAT(fault_of("[]", 0), HasSubstr("does not start with"));
}

TEST(Safetensors, RefusesImpossibleLengths) {
  for (const std::uint64_t n : {std::uint64_t{100}, std::uint64_t{100'000'001}, ~std::uint64_t{0},
                                std::uint64_t{1} << 63}) {
    std::string head(50, '{');
    std::memcpy(head.data(), &n, 8);
    EXPECT_THROW(parse_safetensors_header(head, 50), DataError) << n;
  }
  EXPECT_THROW(parse_safetensors_header("1234567", 7), DataError);
  EXPECT_THROW(parse_safetensors_header("", 0), DataError);
}

TEST(Safetensors, SurvivesMutations) {
  constexpr std::string_view kBytes = "0123456789-.\"{}[],:\\ \x80";
  for (std::uint64_t round = 0; round < 20'000; ++round) {
    std::string bad(kGoldenJson);
    for (std::uint64_t i = 0; i <= mix64(round) % 3; ++i) {
      const std::uint64_t random = mix64(5 * round + i);
      const std::size_t at = random % bad.size();
      if ((random >> 50) % 2 == 0) {
        bad[at] = kBytes[(random >> 32) % kBytes.size()];
      } else {
        bad.erase(at, 1 + (random >> 40) % 4);
      }
    }
    (void)fault_of(bad);
  }
}

}  // namespace
}  // namespace trireme
