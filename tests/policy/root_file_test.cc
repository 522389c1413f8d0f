#include "src/policy/root_file.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A folder in a place that only root can change, unlike that of temporary files.
class RootFileTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "skipped: only root can make files of root";
    }
    std::string path = "/var/lib/trireme-test-XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    folder_ = path;
    write("policy.yaml", "version: 1\n");
  }
  void TearDown() override {
    if (!folder_.empty()) {
      fs::remove_all(folder_);
    }
  }
  void write(const char* name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    ASSERT_EQ(::chmod((folder_ / name).c_str(), 0644), 0);
  }
  std::string refusal(const char* name = "policy.yaml") {
    return message_of<PolicyError>([&] { (void)read_root_file(folder_ / name, kMost); });
  }

  static constexpr std::int64_t kMost = 100;
  fs::path folder_;
};

TEST_F(RootFileTest, ReadsAFileOfRoot) {
  EXPECT_EQ(read_root_file(folder_ / "policy.yaml", kMost), "version: 1\n");
  EXPECT_EQ(read_root_file(folder_ / "absent.yaml", kMost), std::nullopt);
  EXPECT_EQ(read_root_file(folder_ / "absent" / "policy.yaml", kMost), std::nullopt);
}

TEST_F(RootFileTest, RefusesWhatOthersCanWrite) {
  ASSERT_EQ(::chmod((folder_ / "policy.yaml").c_str(), 0664), 0);
  EXPECT_THAT(refusal(), HasSubstr("a group can write to it (mode 0664; chmod go-w)"));
  ASSERT_EQ(::chmod((folder_ / "policy.yaml").c_str(), 0646), 0);
  EXPECT_THAT(refusal(), HasSubstr("everybody can write to it"));
}

TEST_F(RootFileTest, RefusesOtherOwners) {
  ASSERT_EQ(::chown((folder_ / "policy.yaml").c_str(), 1000, 0), 0);
  EXPECT_THAT(refusal(), HasSubstr("belongs to the user 1000 and not to root"));
}

TEST_F(RootFileTest, RefusesFoldersThatOthersCanChange) {
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  EXPECT_THAT(refusal(), HasSubstr("can write to this folder and replace the policy"));
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  ASSERT_EQ(::chown(folder_.c_str(), 1000, 0), 0);
  EXPECT_THAT(refusal(), HasSubstr("belongs to the user 1000"));
}

TEST_F(RootFileTest, RefusesSymbolicLinks) {
  fs::create_symlink(folder_ / "policy.yaml", folder_ / "link.yaml");
  EXPECT_THAT(refusal("link.yaml"), HasSubstr("symbolic link"));
  fs::create_directory_symlink(folder_, folder_ / "link");
  EXPECT_THAT(refusal("link/policy.yaml"), HasSubstr("symbolic link"));
}

TEST_F(RootFileTest, RefusesWhatIsNoFile) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0644), 0);
  EXPECT_THAT(refusal("pipe"), HasSubstr("not a regular file"));
  fs::create_directory(folder_ / "folder");
  EXPECT_THAT(refusal("folder"), HasSubstr("not a regular file"));
  EXPECT_THAT(refusal("policy.yaml/policy.yaml"), HasSubstr("not a folder"));
}

TEST_F(RootFileTest, RefusesLargeFiles) {
  write("policy.yaml", std::string(kMost, '#'));
  EXPECT_EQ(read_root_file(folder_ / "policy.yaml", kMost)->size(), 100U);
  write("policy.yaml", std::string(kMost + 1, '#'));
  EXPECT_THAT(refusal(), HasSubstr("it has more than 100 bytes"));
}

TEST_F(RootFileTest, RefusesWhatIsLargerThanItsStatusSays) {
  const fs::path file = "/proc/meminfo";
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  ASSERT_EQ(status.st_size, 0);
  EXPECT_THAT(message_of<PolicyError>([&] { (void)read_root_file(file, kMost); }),
              HasSubstr("/proc/meminfo: it has more than 100 bytes"));
}

}  // namespace
}  // namespace trireme
