#include "mpi/session/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

Tuning sample() {
  return {8,
          2,
          4,
          {{"all_reduce", 65536, Backend::mpi},
           {"all_reduce", std::int64_t{1} << 60, Backend::shm},
           {"all_to_all", 4096, Backend::ucx}}};
}

TEST(Tuning, ComesBackAsWritten) { EXPECT_EQ(parse_tuning(to_text(sample())), sample()); }

TEST(Tuning, AnEntryHoldsUpToItsSize) {
  const Tuning tuning = sample();
  EXPECT_EQ(tuning.choose("all_reduce", 0), Backend::mpi);
  EXPECT_EQ(tuning.choose("all_reduce", 65536), Backend::mpi);
  EXPECT_EQ(tuning.choose("all_reduce", 65537), Backend::shm);
  EXPECT_EQ(tuning.choose("all_to_all", 4097), std::nullopt);
  EXPECT_EQ(tuning.choose("broadcast", 8), std::nullopt);
}

void refused(const std::string& text, const std::string& words) {
  try {
    parse_tuning(text);
    ADD_FAILURE() << "accepted: " << text;
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(words)) << text;
  }
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = to_text(sample());
  const std::size_t at = text.find(from);
  return at == std::string::npos ? "" : text.replace(at, from.size(), to);
}

TEST(Tuning, HostileFilesAreRefused) {
  refused("", "not JSON");
  refused("[]", "schema");
  refused("{\"schema\": 1", "not JSON");
  refused(std::string(100'000, '['), "nested");
  refused(with("\"schema\": 1", "\"schema\": 2"), "measure again");
  refused(with("\"ranks\": 8", "\"ranks\": 0"), "ranks");
  refused(with("\"ranks\": 8", "\"ranks\": 8.5"), "ranks");
  refused(with("\"hosts\": 2", "\"hosts\": 9"), "hosts");
  refused(with("\"ranks_per_host\": 4", "\"ranks_per_host\": \"4\""), "ranks_per_host");
  refused(with("\"entries\": [", "\"entries\": [7, "), "op");
  refused(with("\"op\": \"all_reduce\"", "\"op\": \"barrier\""), "barrier");
  refused(with("65536", "-1"), "max_bytes");
  refused(with("65536", "18446744073709551615"), "max_bytes");
  refused(with("65536", "1152921504606846976"), "sorted by size");
  refused(with("\"mpi\"", "\"auto\""), "auto");
  refused(with("\"mpi\"", "\"nccl\""), "nccl");
  refused(with("\"mpi\"", "null"), "backend");
  refused(with("\"hosts\": 2,", "\"hosts\": 2, \"hosts\": 2,"), "twice");
}

// If a byte is changed or left out, the text is refused as data, or gives a table that can be
// written again.
TEST(Tuning, DamagedFilesNeverEscape) {
  const std::string text = to_text(sample());
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const int change : {-1, 0, 1, 0x20, 0x80}) {
      std::string damaged = text;
      if (change < 0) {
        damaged.erase(at, 1);
      } else {
        damaged[at] = static_cast<char>(change == 0 ? 0 : damaged[at] ^ change);
      }
      try {
        const Tuning tuning = parse_tuning(damaged);
        EXPECT_EQ(parse_tuning(to_text(tuning)), tuning);
      } catch (const DataError&) {
      }
    }
  }
}

}  // namespace
}  // namespace trireme
