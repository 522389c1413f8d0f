// What commands do before and while they destroy something: the two questions, and zeros in place.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/app/access/confirmation.h"
#include "src/app/access/overwrite.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const ConfirmationTexts kTexts{"erase it", "erase it for ever", "nothing was erased"};

TEST(Confirmation, WantsTheWordTwice) {
  EXPECT_NO_THROW(confirm_twice("run", {"run", "run"}, kTexts));
  EXPECT_NO_THROW(confirm_twice("run", {"run", "run", "more"}, kTexts));
  for (const std::vector<std::string>& given :
       {std::vector<std::string>{"Run", "run"}, {"run", "run "}, {"", ""}}) {
    EXPECT_THAT(message_of<PolicyError>([&] { confirm_twice("run", given, kTexts); }),
                HasSubstr("nothing was erased: confirm twice, at a terminal or with --confirm run "
                          "--confirm run"));
  }
}

class OverwriteTest : public testing::Test {
 protected:
  fs::path file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
    return folder_.path() / name;
  }
  TempFolder folder_;
};

TEST_F(OverwriteTest, LeavesZerosOfTheSameLength) {
  const std::size_t more_than_a_block = (std::size_t{1} << 20) + 5;
  const fs::path path = file("secret", std::string(more_than_a_block, 's'));
  overwrite(path);
  EXPECT_EQ(read_file(path), std::string(more_than_a_block, '\0'));
  const fs::path empty = file("empty", "");
  overwrite(empty);
  EXPECT_EQ(fs::file_size(empty), 0U);
}

TEST_F(OverwriteTest, LeavesFilesThatHaveOtherNamesOrAreNone) {
  const fs::path path = file("first", "kept");
  fs::create_hard_link(path, folder_.path() / "second");
  overwrite(path);
  EXPECT_EQ(read_file(path), "kept");
  fs::create_directory(folder_.path() / "folder");
  EXPECT_THROW(overwrite(folder_.path() / "folder"), Error);
}

TEST_F(OverwriteTest, FollowsNoLink) {
  const fs::path path = file("target", "kept");
  fs::create_symlink(path, folder_.path() / "link");
  EXPECT_THROW(overwrite(folder_.path() / "link"), Error);
  EXPECT_THROW(overwrite(folder_.path() / "absent"), Error);
  EXPECT_EQ(read_file(path), "kept");
}

}  // namespace
}  // namespace trireme
