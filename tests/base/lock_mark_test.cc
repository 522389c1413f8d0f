#include "src/base/lock_mark.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

TEST(LockMark, NamesTheOwner) {
  const TempFolder folder;
  const std::filesystem::path file = folder.path() / "lock";
  EXPECT_EQ(lock_holder_text(file), "");
  write_file_durably(file, "7 1\n" + own_lock_mark());
  const std::string owner = fmt::format(": host {}, process {} (since 2", host_name(), ::getpid());
  EXPECT_TRUE(lock_holder_text(file).starts_with(owner)) << lock_holder_text(file);
  write_file_durably(file, "held by \x1b[2J\n");
  EXPECT_EQ(lock_holder_text(file), ": \\x1b[2J");
  for (const char* const text : {"", "7 1\n", "held by torn"}) {
    write_file_durably(file, text);
    EXPECT_EQ(lock_holder_text(file), "") << text;
  }
}

}  // namespace
}  // namespace trireme
