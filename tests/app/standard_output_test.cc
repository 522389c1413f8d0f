#include "src/app/command/standard_output.h"

#include <cstdio>
#include <functional>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <termios.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using Descriptor = UniqueHandle<FileDescriptorTraits>;

// Standard output goes to the descriptor while this object lives.
class Redirected {
 public:
  explicit Redirected(int to) : before_(::dup(STDOUT_FILENO)) {
    std::fflush(stdout);
    ::dup2(to, STDOUT_FILENO);
  }
  ~Redirected() {
    std::fflush(stdout);
    std::clearerr(stdout);
    ::dup2(before_.get(), STDOUT_FILENO);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  Descriptor before_;
};

std::string on_file(const std::function<void()>& print) {
  testing::internal::CaptureStdout();
  print();
  return testing::internal::GetCapturedStdout();
}

// Returns what a terminal receives, or "" if this machine has none.
std::string on_terminal(const std::function<void()>& print) {
  const Descriptor master(::posix_openpt(O_RDWR | O_NOCTTY));
  if (!master || ::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0) {
    return "";
  }
  const Descriptor terminal(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY));
  termios settings{};
  ::tcgetattr(terminal.get(), &settings);
  ::cfmakeraw(&settings);  // "\n" stays as it is
  ::tcsetattr(terminal.get(), TCSANOW, &settings);
  {
    const Redirected redirected(terminal.get());
    print();
  }
  // The terminal passes text on some time later, so a mark shows where it ends.
  const char mark = '\0';
  EXPECT_EQ(::write(terminal.get(), &mark, 1), 1);
  std::string text;
  char next = 0;
  while (::read(master.get(), &next, 1) == 1 && next != mark) {
    text += next;
  }
  return text;
}

TEST(StandardOutput, JsonReplacesBytesThatAreNotUtf8) {
  const nlohmann::ordered_json document = {{"b", "x\xFFy"}, {"a", {1, 2}}};
  EXPECT_EQ(json_line(document), "{\"b\":\"x\xEF\xBF\xBDy\",\"a\":[1,2]}");
  EXPECT_EQ(json_text(document),
            "{\n  \"b\": \"x\xEF\xBF\xBDy\",\n  \"a\": [\n    1,\n    2\n  ]\n}");
  EXPECT_EQ(on_file([&] { print_json_line(document); }), json_line(document) + "\n");
  EXPECT_EQ(on_file([&] { print_json(document); }), json_text(document) + "\n");
}

// U+202E reverses the direction of text on a terminal.
TEST(StandardOutput, OnATerminalTextCannotControlIt) {
  const nlohmann::ordered_json document = {{"a", "\u202Eä"}};
  const std::string shown = on_terminal([&] { print_json_line(document); });
  if (shown.empty()) {
    GTEST_SKIP() << "needs a pseudoterminal: mount devpts at /dev/pts";
  }
  EXPECT_EQ(shown, "{\"a\":\"\\u202e\\u00e4\"}\n");
  EXPECT_EQ(nlohmann::ordered_json::parse(shown), document);
  const auto print = [] {
    TextPrinter printer;
    printer.print("a\x1b[2J\xC3");
    printer.print("\xA4\nb\xFF");
    printer.end();
  };
  EXPECT_EQ(on_terminal(print), "a\\x1b[2Jä\nb\\xff\n");
  EXPECT_EQ(on_file(print), "a\x1b[2Jä\nb\xFF\n");
}

TEST(StandardOutput, AnIncompleteCharacterAtTheEndIsShown) {
  const auto print = [] {
    TextPrinter printer;
    printer.print("a\xC3");
    printer.end();
  };
  EXPECT_EQ(on_file(print), "a\xC3\n");
  const std::string shown = on_terminal(print);
  EXPECT_TRUE(shown.empty() || shown == "a\\xc3\n") << shown;
}

TEST(StandardOutput, LostOutputIsAnIoError) {
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full);
  std::string now;
  std::string later;
  {
    const Redirected redirected(full.get());
    std::fputs("lost", stdout);
    now = message_of<IoError>([] { flush_standard_output(); });
    later = message_of<IoError>([] { flush_standard_output(); });
  }
  EXPECT_EQ(now, "cannot write to standard output: No space left on device");
  EXPECT_THAT(later, HasSubstr("cannot write to standard output: "));
  EXPECT_NO_THROW(flush_standard_output());
}

}  // namespace
}  // namespace trireme
