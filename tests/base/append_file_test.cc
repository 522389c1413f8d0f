#include "src/base/append_file.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "src/base/error.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

// While an object lives, this process's files can't grow beyond `bytes`, which simulates a full
// disk without root.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    (void)std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST(AppendFile, DropsWholeRecordsWhileTheDiskIsFull) {
  const TempFolder folder;
  const auto path = folder.path() / "log";
  AppendFile file = AppendFile::open_lines(path);
  EXPECT_TRUE(file.append("first\n"));
  {
    const FileSizeLimit limit(10);
    EXPECT_FALSE(file.append("does not fit\n"));
    EXPECT_FALSE(file.append("does not fit either\n"));
    EXPECT_TRUE(file.append("fit\n"));
  }
  EXPECT_TRUE(file.append("space again\n"));
  EXPECT_EQ(file.dropped(), 2);
  EXPECT_THAT(file.first_failure(), testing::HasSubstr(path.string()));
  EXPECT_EQ(read_file(path), "first\nfit\nspace again\n");
}

// A log's name could be a link that someone else has placed.
TEST(AppendFile, DoesNotFollowLinks) {
  const TempFolder folder;
  const auto target = folder.path() / "target";
  const auto link = folder.path() / "log";
  std::filesystem::create_symlink(target, link);
  EXPECT_THROW(AppendFile::open_lines(link), PolicyError);
  EXPECT_FALSE(std::filesystem::exists(target));
  std::ofstream(target) << "precious\n";
  EXPECT_THROW(AppendFile::open_lines(link), PolicyError);
  EXPECT_EQ(read_file(target), "precious\n");
}

TEST(AppendFile, TheSameForNewBinaryFiles) {
  const TempFolder folder;
  const auto path = folder.path() / "events";
  AppendFile file = AppendFile::create_new(path);
  EXPECT_TRUE(file.append("0123"));
  {
    const FileSizeLimit limit(6);
    EXPECT_FALSE(file.append("4567"));
  }
  EXPECT_TRUE(file.append("89"));
  EXPECT_EQ(read_file(path), "012389");
  EXPECT_THROW(AppendFile::create_new(path), IoError);
}

TEST(AppendFile, CutsATornLastLine) {
  const TempFolder folder;
  const auto path = folder.path() / "log";
  const std::string whole = std::string(10000, 'a') + "\n";
  for (const std::string& torn : {std::string(), std::string("{\"half"), std::string(9000, 'b')}) {
    std::ofstream(path) << whole << torn;
    AppendFile file = AppendFile::open_lines(path);
    file.append("next\n");
    EXPECT_EQ(read_file(path), whole + "next\n");
  }
  std::ofstream(path) << "no line end at all";
  AppendFile file = AppendFile::open_lines(path);
  file.append("next\n");
  EXPECT_EQ(read_file(path), "next\n");
}

}  // namespace
}  // namespace trireme
