#include "src/base/stack_dump.h"

#include <atomic>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

int count_of(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

std::string contents(const std::filesystem::path& file) {
  return std::filesystem::exists(file) ? read_file(file) : "";
}

// Two spinning threads report their stacks and continue.
TEST(StackDump, EveryThreadReportsWhereItIs) {
  const TempFolder folder;
  const auto file = folder.path() / "rank-00000.stack";
  const StackDump dump(file);
  EXPECT_FALSE(std::filesystem::exists(file));
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) {
    }
  });
  ask_for_stacks(::getpid());
  for (int i = 0; i < 1000 && count_of(contents(file), "process ") < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  stop = true;
  other.join();
  const std::string text = read_file(file);
  EXPECT_EQ(count_of(text, "process "), 2) << text;
  EXPECT_GT(count_of(text, "base_test"), 2) << text;  // frames of this program
}

TEST(StackDump, AFifoInItsPlaceDoesNotStopTheProcess) {
  const TempFolder folder;
  const auto file = folder.path() / "rank-00000.stack";
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  const StackDump dump(file);
  ask_for_stacks(::getpid());  // no process reads the FIFO
  const int reader = ::open(file.c_str(), O_RDONLY | O_NONBLOCK);
  ask_for_stacks(::getpid());  // now a reader exists
  char byte = 0;
  EXPECT_LE(::read(reader, &byte, 1), 0) << "something was written into it";
  ::close(reader);
}

TEST(StackDump, WhoHasNoneIsNotHarmed) {
  ask_for_stacks(::getpid());
  {
    const StackDump dump("/nowhere/rank-00000.stack");
    ask_for_stacks(::getpid());
  }
  ask_for_stacks(::getpid());
}

}  // namespace
}  // namespace trireme
