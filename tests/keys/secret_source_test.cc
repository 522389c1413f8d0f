#include "src/keys/secret_source.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "src/base/error.h"
#include "tests/support/message_of.h"
#include "tests/support/on_terminal.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kAdvice[] = "name a file";

class SecretLine : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& text, mode_t mode = 0600) {
    const std::filesystem::path path = folder_.path() / "secret";
    std::filesystem::remove(path);
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
  TempFolder folder_;
};

TEST_F(SecretLine, IsTheFirstOne) {
  EXPECT_EQ(read_secret_line(file("some words\nmore\n"), "a PIN").view(), "some words");
  EXPECT_EQ(read_secret_line(file("some words\r\n"), "a PIN").view(), "some words");
  EXPECT_EQ(read_secret_line(file(" kept "), "a PIN").view(), " kept ");
}

TEST_F(SecretLine, OtherFilesAreRefused) {
  EXPECT_THROW((void)read_secret_line(folder_.path() / "none", "a PIN"), NotFound);
  EXPECT_THROW((void)read_secret_line(file(""), "a PIN"), DataError);
  EXPECT_THAT(message_of<DataError>([&] { (void)read_secret_line(file("\nsecond\n"), "a PIN"); }),
              HasSubstr("/secret: the first line is empty: write a PIN there"));
  EXPECT_THROW((void)read_secret_line(file(std::string(5000, 'x')), "a PIN"), DataError);
  EXPECT_THAT(message_of<PolicyError>([&] { (void)read_secret_line(file("x", 0644), "a PIN"); }),
              HasSubstr("is a PIN that others can use (mode 0644)"));
}

// Asks, and returns 0 if the expected text was typed.
int asks_for(std::string_view expected) {
  return ask_secret("Password:", kAdvice).view() == expected ? 0 : 2;
}

TEST(AskSecret, DoesNotShowWhatIsTyped) {
  const ShownText shown = on_terminal({"open sesame\n"}, [] { return asks_for("open sesame"); });
  EXPECT_EQ(shown.exit_code, 0) << shown.text;
  EXPECT_EQ(shown.text, "Password: \r\n");
}

TEST(AskSecret, KeysEditTheLine) {
  EXPECT_EQ(on_terminal({"wrong\x15"
                         "rx\x7fi\xc3\xa4\x7f\x08ight\r"},
                        [] { return asks_for("right"); })
                .exit_code,
            0);
  EXPECT_EQ(on_terminal({"\x7f\x08\n"}, [] { return asks_for(""); }).exit_code, 0);
  EXPECT_EQ(
      on_terminal({std::string(1024, 'x') + "\n"}, [] { return asks_for(std::string(1024, 'x')); })
          .exit_code,
      0);
}

TEST(AskSecret, CanBeCancelled) {
  for (const char* key : {"abc\x03", "abc\x04"}) {
    const ShownText shown = on_terminal({key}, [] { return asks_for("abc"); });
    EXPECT_EQ(shown.exit_code, 1);
    EXPECT_THAT(shown.text, HasSubstr("cancelled on the terminal"));
    EXPECT_THAT(shown.text, Not(HasSubstr("abc")));
  }
  EXPECT_THAT(on_terminal({std::string(1025, 'x') + "\n"}, [] { return asks_for(""); }).text,
              HasSubstr("more than 1024 bytes were typed"));
}

TEST(AskSecret, TheTerminalEchoesAgainAfterwards) {
  const ShownText shown = on_terminal({"hidden\n"}, [] {
    (void)ask_secret("Password:", kAdvice);
    termios now{};
    ::tcgetattr(STDIN_FILENO, &now);
    return (now.c_lflag & ECHO) != 0 && (now.c_lflag & ICANON) != 0 ? 0 : 2;
  });
  EXPECT_EQ(shown.exit_code, 0);
}

TEST(AskSecret, NeedsATerminal) {
  const ShownText shown = without_terminal([] { return asks_for(""); });
  EXPECT_EQ(shown.exit_code, 1);
  EXPECT_EQ(shown.text, "there is no terminal to ask on: name a file");
}

TEST(AskSecret, NeedsTheForeground) {
  const ShownText shown = on_terminal({}, [] {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setpgid(0, 0);
      end_child(STDOUT_FILENO, [] { return asks_for(""); });
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  });
  EXPECT_EQ(shown.exit_code, 1);
  EXPECT_THAT(shown.text, HasSubstr("it runs in the background or was started by a launcher"));
}

}  // namespace
}  // namespace trireme
