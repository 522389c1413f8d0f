#include "src/study/tar_file.h"

#include <fstream>

#include <gtest/gtest.h>

#include "src/base/command.h"
#include "src/base/error.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

TEST(TarFile, TarReadsIt) {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  const std::string deep = std::string(120, 'd') + "/" + std::string(90, 'f');
  std::ofstream(path, std::ios::binary)
      << tar_entry("a/b.txt", "hello\n", 1'800'000'000) << tar_entry("empty", "", -5)
      << tar_entry(deep, std::string(512, 'x'), 0) << tar_end();
  const CommandResult listed = run_command({"tar", "-tf", path}, std::chrono::seconds(30));
  ASSERT_TRUE(listed.good()) << listed.errors;
  EXPECT_EQ(listed.output, "a/b.txt\nempty\n" + deep + "\n");
  EXPECT_EQ(run_command({"tar", "-xOf", path, "a/b.txt"}, std::chrono::seconds(30)).output,
            "hello\n");
}

TEST(TarFile, ReplacesOnlyArchives) {
  const TempFolder folder;
  const std::filesystem::path file = folder.path() / "x";
  EXPECT_TRUE(may_become_tar(file)) << "there is none";
  std::ofstream(file) << "";
  EXPECT_TRUE(may_become_tar(file));
  std::ofstream(file) << tar_end();
  EXPECT_FALSE(may_become_tar(file));
  std::ofstream(file) << tar_entry("a", "b", 0);
  EXPECT_TRUE(may_become_tar(file));
}

TEST(TarFile, RefusesNamesThatDoNotFit) {
  EXPECT_THROW((void)tar_entry(std::string(101, 'a'), "", 0), ConfigError);
  EXPECT_THROW((void)tar_entry(std::string(200, 'a') + "/" + std::string(50, 'b'), "", 0),
               ConfigError);
}

}  // namespace
}  // namespace trireme
