#include "io/checkpoint/generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "io/checkpoint/names.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/io/checkpoint/sample_state.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const fs::path& folder) {
  return message_of<DataError>([&] { next_generation(folder); });
}

TEST(Generation, GrowsWithEveryRun) {
  TempFolder folder;
  EXPECT_EQ(next_generation(folder.path()).number, 1);
  EXPECT_EQ(next_generation(folder.path()).number, 2);
  fs::create_directory(folder.path() / ".tmp-1-7");
  EXPECT_EQ(next_generation(folder.path()).number, 8);
  write_file_durably(folder.path() / kGenerationName, "12");  // without the final newline
  EXPECT_EQ(next_generation(folder.path()).number, 13);
}

TEST(Generation, WarnsOfADamagedFile) {
  TempFolder folder;
  EXPECT_EQ(next_generation(folder.path()).warning, "");
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("x\n"), std::string("-1\n"),
        std::string("7\n\n"), std::string("7 "), std::string("0x7\n"), std::string(100, '1')}) {
    write_file_durably(folder.path() / kGenerationName, text);
    const Generation next = next_generation(folder.path());
    EXPECT_EQ(next.number, 1) << text;
    EXPECT_THAT(next.warning,
                AllOf(HasSubstr((folder.path() / kGenerationName).string()), HasSubstr("damaged")))
        << text;
  }
  EXPECT_EQ(next_generation(folder.path()).number, 2);
}

TEST(Generation, ReplacesWhatIsNoFile) {
  TempFolder folder;
  const fs::path file = folder.path() / kGenerationName;
  const auto expect_replaced = [&](const std::string& what) {
    const Generation next = next_generation(folder.path());
    EXPECT_EQ(next.number, 1);
    EXPECT_THAT(next.warning, AllOf(HasSubstr("GENERATION is " + what), HasSubstr("replaced")));
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(file)));
    fs::remove(file);
  };
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  expect_replaced("a FIFO");
  write_file_durably(folder.path() / "other", "7\n");
  for (const char* const target : {"other", "nowhere", ".", "/dev/stdin"}) {
    fs::create_symlink(target, file);
    expect_replaced("a symbolic link");
  }
  EXPECT_EQ(read_file(folder.path() / "other"), "7\n");
  fs::create_directory(file);
  EXPECT_THAT(message_of<PolicyError>([&] { next_generation(folder.path()); }),
              AllOf(HasSubstr("GENERATION is a folder"), HasSubstr("remove it")));
}

// Each of these made every later save of the folder fail, hours after the start.
TEST(Generation, RefusesAPlantedFileAtTheStart) {
  for (const char* number :
       {"1000000000", "1152921504606846976", "9223372036854775807", "99999999999999999999999999"}) {
    TempFolder folder;
    write_file_durably(folder.path() / kGenerationName, fmt::format("{}\n", number));
    EXPECT_THAT(refusal(folder.path()),
                AllOf(HasSubstr((folder.path() / kGenerationName).string()), HasSubstr("Remove")))
        << number;
    fs::remove(folder.path() / kGenerationName);
    EXPECT_EQ(next_generation(folder.path()).number, 1);
  }
}

TEST(Generation, WarnsBeforeAPlantedNumberReachesTheLimit) {
  TempFolder folder;
  const fs::path file = folder.path() / kGenerationName;
  write_file_durably(file, "998999999\n");
  EXPECT_EQ(next_generation(folder.path()).warning, "");
  write_file_durably(file, "999999998\n");
  const Generation next = next_generation(folder.path());
  EXPECT_EQ(next.number, kMostGeneration - 1);
  EXPECT_THAT(next.warning,
              AllOf(HasSubstr(file.string()), HasSubstr("only 1 more"), HasSubstr("planted")));
}

TEST(Generation, RefusesAPlantedAttempt) {
  TempFolder folder;
  const fs::path planted = folder.path() / ".tmp-1-9223372036854775807";
  fs::create_directory(planted);
  EXPECT_THAT(refusal(folder.path()), HasSubstr(planted.string()));
  fs::remove(planted);
  EXPECT_EQ(next_generation(folder.path()).number, 1);
}

// A manifest whose generation is beyond the bound is invalid; one at the bound is refused by name.
TEST(Generation, RefusesAPlantedManifest) {
  TempFolder folder;
  ASSERT_TRUE(save_state(folder.path(), small_state(), 1).durable);
  const fs::path file = step_path(folder.path(), 1) / kManifestName;
  Manifest manifest = inspect_step(step_path(folder.path(), 1)).manifest.value();
  manifest.generation = kMostGeneration;
  write_file_durably(file, to_text(manifest));
  EXPECT_THAT(refusal(folder.path()), HasSubstr(file.string()));
  manifest.generation = std::int64_t{1} << 59;
  write_file_durably(file, to_text(manifest));
  EXPECT_THAT(inspect_step(step_path(folder.path(), 1)).problem, HasSubstr("generation"));
  EXPECT_EQ(next_generation(folder.path()).number, 2);
}

}  // namespace
}  // namespace trireme
