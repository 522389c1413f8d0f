#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/data/stage.h"
#include "tests/io/data/data_fixture.h"

namespace trireme {
namespace {

using testing::HasSubstr;

using StagingTest = DataTest;

TEST_F(StagingTest, FollowsNoLinkOutOfTheDataset) {
  write("in/a.txt", "text");
  pack(options("in", "data"), {});
  const fs::path folder = folder_ / "data";
  write("private.txt", "canary");
  const fs::path provenance = folder / "provenance.intoto.jsonl";
  fs::create_symlink(folder_ / "private.txt", provenance);
  const fs::path to = folder_ / "copy";
  for (int time = 0; time < 2; ++time) {  // a new copy, and one that is there
    EXPECT_THAT(stage(folder, to, {}).warning, HasSubstr("leads out of its folder, to"));
    EXPECT_FALSE(fs::exists(to / provenance.filename()));
  }
  fs::remove(provenance);
  write("data/provenance.intoto.jsonl", "signed");
  EXPECT_EQ(stage(folder, to, {}).warning, "");
  EXPECT_EQ(read_file(to / provenance.filename()), "signed");
}

}  // namespace
}  // namespace trireme
