#include "src/base/out_of_memory.h"

#include <csignal>
#include <new>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

template <typename E>
void fail_in_a_thread(const E& error) {
  end_with_words_without_memory();
  std::thread([&error] { throw error; }).join();
}

TEST(OutOfMemoryDeathTest, EndsWithWordsAndACode) {
  EXPECT_EXIT(fail_in_a_thread(std::bad_alloc()),
              ::testing::ExitedWithCode(static_cast<int>(ExitCode::device)),
              "trireme: out of memory");
}

TEST(OutOfMemoryDeathTest, ReplacesNoErrorOfAnotherKind) {
  EXPECT_EXIT(fail_in_a_thread(std::runtime_error("a defect")), ::testing::KilledBySignal(SIGABRT),
              "a defect");
}

}  // namespace
}  // namespace trireme
