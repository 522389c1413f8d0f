#include "src/policy/file_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

TEST(FilePlace, ReadsMounts) {
  EXPECT_THAT(parse_mounts("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                           "30 22 0:25 / /data\\040one rw,nosuid shared:1 - nfs4 host:/x rw\n"
                           "damaged\n\n"
                           "31 22 0:25 / relative rw\n"
                           "32 22 0:25 / /a\\1"),
              ElementsAre("/", "/data one", "/a\\1"));
}

TEST(FilePlace, FindsTheLongestMount) {
  const std::vector<fs::path> mounts = {"/", "/data", "/data/usb"};
  EXPECT_EQ(mount_of("/data/a", mounts), "/data");
  EXPECT_EQ(mount_of("/data/usb/a", mounts), "/data/usb");
  EXPECT_EQ(mount_of("/data/usb", mounts), "/data/usb");
  EXPECT_EQ(mount_of("/data/usb2", mounts), "/data");
  EXPECT_EQ(mount_of("/database", mounts), "/");
}

TEST(FilePlace, FollowsSymbolicLinks) {
  const TempFolder folder;
  const fs::path real = fs::canonical(folder.path()) / "real";
  fs::create_directory(real);
  fs::create_directory_symlink(real, folder.path() / "link");
  EXPECT_EQ(place_of(folder.path() / "link").path, real);
  EXPECT_EQ(place_of(folder.path() / "link" / "new" / "").path, real / "new");
  EXPECT_EQ(place_of(folder.path() / "link" / ".." / "real").path, real);
}

TEST(FilePlace, RefusesLoops) {
  const TempFolder folder;
  fs::create_symlink("loop", folder.path() / "loop");
  EXPECT_THROW((void)place_of(folder.path() / "loop" / "x"), PolicyError);
}

}  // namespace
}  // namespace trireme
