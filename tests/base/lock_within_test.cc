#include "src/base/lock_within.h"

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using Handle = UniqueHandle<FileDescriptorTraits>;

Handle open_folder(const std::filesystem::path& path) {
  return Handle(::open(path.c_str(), O_RDONLY | O_DIRECTORY));
}

TEST(LockWithin, GivesUpWhileAnotherHasTheLock) {
  const TempFolder folder;
  Handle first = open_folder(folder.path());
  const Handle second = open_folder(folder.path());
  const auto lock = [&](const Handle& folder_handle) {
    return lock_within(folder_handle.get(), std::chrono::seconds(0), folder.path());
  };
  EXPECT_EQ(lock(first), 0);
  EXPECT_THAT(message_of<IoError>([&] { (void)lock(second); }),
              testing::HasSubstr(folder.path().string()));
  first.reset();
  EXPECT_EQ(lock(second), 0);
}

TEST(LockWithin, SaysWhyThereIsNoLock) {
  EXPECT_EQ(lock_within(-1, std::chrono::seconds(1), "x"), EBADF);
}

}  // namespace
}  // namespace trireme
