#include "src/base/file_writers.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "src/base/error.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;

TEST(FileWriters, AreThoseWhomTheModeNames) {
  const TempFolder folder;
  const std::filesystem::path file = folder.path() / "file";
  EXPECT_EQ(writers_of(file), FileWriters::owner);
  std::ofstream(file) << "x";
  std::filesystem::create_symlink("file", folder.path() / "link");
  for (const auto& [mode, writers] : {std::pair(0644U, FileWriters::owner),
                                      {0664U, FileWriters::group},
                                      {0646U, FileWriters::everybody},
                                      {0666U, FileWriters::everybody}}) {
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    EXPECT_EQ(writers_of(file), writers) << mode;
    EXPECT_EQ(writers_of(folder.path() / "link"), writers) << mode;
  }
  EXPECT_THAT(message_of<PolicyError>([&] { refuse_if_all_can_write(file, "do harm"); }),
              HasSubstr("file can be changed by every user of this host, who could do harm: chmod "
                        "o-w it"));
  ASSERT_EQ(::chmod(file.c_str(), 0664), 0);
  EXPECT_NO_THROW(refuse_if_all_can_write(file, "do harm"));
}

}  // namespace
}  // namespace trireme
