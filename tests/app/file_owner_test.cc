#include "src/app/access/file_owner.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777U : 0;
}

TEST(FileOwner, IsGivenToTheFileThatReplacesAnother) {
  const TempFolder folder;
  const fs::path file = folder.path() / "file";
  EXPECT_FALSE(owner_of(file).has_value());
  write_file_durably(file, "old");
  ASSERT_EQ(::chmod(file.c_str(), 04640), 0);
  const std::optional<FileOwner> owner = owner_of(file);
  ASSERT_TRUE(owner.has_value());
  EXPECT_EQ(owner->user, ::geteuid());
  write_file_durably(file, "new");
  give_owner(file, *owner);
  EXPECT_EQ(mode_of(file), 0640U);  // no program of its owner
}

// Whoever may write to the folder could otherwise have root give them any file.
TEST(FileOwner, IsNotGivenToWhatSomebodyPutsInItsPlace) {
  const TempFolder folder;
  const fs::path target = folder.path() / "target";
  write_file_durably(target, "secret");
  ASSERT_EQ(::chmod(target.c_str(), 0600), 0);
  const FileOwner owner{::geteuid(), ::getegid(), 0666};
  fs::create_symlink("target", folder.path() / "link");
  EXPECT_FALSE(owner_of(folder.path() / "link").has_value());
  give_owner(folder.path() / "link", owner);
  EXPECT_EQ(mode_of(target), 0600U);
  fs::create_hard_link(target, folder.path() / "name");
  give_owner(folder.path() / "name", owner);
  EXPECT_EQ(mode_of(target), 0600U);
  ASSERT_EQ(::mkfifo((folder.path() / "fifo").c_str(), 0600), 0);
  give_owner(folder.path() / "fifo", owner);
  EXPECT_EQ(mode_of(folder.path() / "fifo"), 0600U);
}

}  // namespace
}  // namespace trireme
