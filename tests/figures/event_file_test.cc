#include "src/figures/event_file.h"

#include <cmath>
#include <sstream>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/file.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

// The vectors are from RFC 3720, section B.4.
TEST(Crc32c, PublishedVectors) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
}

// The golden bytes come from make_event_records.py.
TEST(EventFile, RecordsAreThoseOfAnotherImplementation) {
  std::istringstream golden(
      read_file(std::string(TRIREME_SOURCE_DIR) + "/tests/figures/event_records.txt"));
  std::string umlauts;
  for (int i = 0; i < 70; ++i) {
    umlauts += "ä";
  }
  for (const std::string& event :
       {version_event(1.0), scalar_event(2.0, 1, {{"loss", 0.5F}}), start_event(3.5, 300),
        scalar_event(1700000000.25, 123456789012,
                     {{"train/loss", std::nanf("")}, {umlauts, -1e-30F}})}) {
    std::string expected;
    ASSERT_TRUE(std::getline(golden, expected));
    EXPECT_EQ(hex(event_record(event)), expected);
  }
}

TEST(EventFile, BeginsWithVersionAndStartThenScalars) {
  const TempFolder folder;
  EventFile events(folder.path() / "tensorboard", 42);
  EXPECT_THAT(events.path().filename().string(), testing::StartsWith("events.out.tfevents."));
  events.scalars(43, {{"loss", 1.5F}, {"lr", 0.1F}});
  std::string rest = read_file(events.path());
  std::vector<std::string> records;
  while (rest.size() >= 16) {
    std::uint64_t bytes = 0;
    std::copy_n(rest.data(), 8, reinterpret_cast<char*>(&bytes));
    ASSERT_LE(bytes + 16, rest.size());
    const std::string event = rest.substr(12, bytes);
    EXPECT_EQ(event_record(event), rest.substr(0, bytes + 16));
    records.push_back(event);
    rest.erase(0, bytes + 16);
  }
  EXPECT_TRUE(rest.empty());
  ASSERT_EQ(records.size(), 3U);
  EXPECT_THAT(records[0], testing::HasSubstr("brain.Event:2"));
  EXPECT_THAT(records[1], testing::EndsWith(std::string("\x10\x2a\x3a\x02\x08\x01")));
  EXPECT_THAT(records[2], testing::HasSubstr("loss"));
}

TEST(EventFile, TwoStartsMakeTwoFiles) {
  const TempFolder folder;
  const EventFile a(folder.path(), 0);
  const EventFile b(folder.path(), 0);
  EXPECT_NE(a.path(), b.path());
}

}  // namespace
}  // namespace trireme
