#include "io/data/prompt_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

class PromptFile : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_.path() / name;
    write_file_durably(path, text);
    return path;
  }
  TempFolder folder_;
};

TEST_F(PromptFile, HoldsOneALine) {
  EXPECT_THAT(read_prompts(write("a.txt", "The ship\r\n\n  two {\nlast")),
              testing::ElementsAre("The ship", "  two {", "last"));
  EXPECT_THROW(read_prompts(folder_.path() / "none"), NotFound);
  EXPECT_THROW(read_prompts(write("empty.txt", "\n \n")), DataError);
}

TEST_F(PromptFile, HoldsJsonLines) {
  EXPECT_THAT(
      read_prompts(write("a.jsonl", "{\"prompt\": \"a\\nb\", \"id\": 1}\n{\"prompt\":\"\"}\n")),
      testing::ElementsAre("a\nb", ""));
  for (const char* line : {"{\"text\": \"a\"}", "{\"prompt\": 1}", "[]", "{"}) {
    try {
      read_prompts(write("bad.jsonl", std::string("{\"prompt\": \"a\"}\n") + line));
      FAIL() << line;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("bad.jsonl:2: ")) << line;
    }
  }
}

}  // namespace
}  // namespace trireme
