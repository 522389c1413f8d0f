// Tests that checkpoints of every released format can be loaded. Each folder of golden/ holds
// small_state(1) as step 3, saved by two ranks with cut_flat, in the format of its name. To add the
// folder of a new format:
//   TRIREME_MAKE_GOLDEN=FOLDER checkpoint_test
//   --gtest_filter=Golden.TheCurrentFormatHasTheSameDigest
#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/io/checkpoint/sample_state.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

// The digest was recorded when the first format was released.
constexpr const char* kDigest =
    "sha256:c1e47520a3d7a38652f183702882d89292cea4b3d2ddb3b5b640641a872b6c79";

TEST(Golden, EveryReleasedFormatLoads) {
  int formats = 0;
  for (const auto& entry :
       fs::directory_iterator(fs::path(TRIREME_SOURCE_DIR) / "tests/io/checkpoint/golden")) {
    ++formats;
    EXPECT_EQ(digest_of(step_path(entry.path(), 3)), kDigest) << entry.path();
    for (const NamedCut& cut : all_cuts()) {
      const LoadedState loaded = load_state(entry.path(), small_state(1), cut.cut, cut.ranks);
      EXPECT_TRUE(loaded.equal) << entry.path() << " " << cut.name;
      ASSERT_TRUE(loaded.resumed.has_value());
      EXPECT_EQ(loaded.resumed->manifest.meta.samples, 96);
    }
  }
  EXPECT_GE(formats, 1);
}

TEST(Golden, TheCurrentFormatHasTheSameDigest) {
  const TempFolder temporary;
  const char* const wanted = std::getenv("TRIREME_MAKE_GOLDEN");
  const fs::path folder = wanted == nullptr ? temporary.path() : fs::path(wanted);
  EXPECT_TRUE(save_state(folder, small_state(1), 3, cut_flat, 2).durable);
  EXPECT_EQ(digest_of(step_path(folder, 3)), kDigest);
}

}  // namespace
}  // namespace trireme
