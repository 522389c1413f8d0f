#include "src/train/stop_flag.h"

#include <csignal>
#include <optional>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace trireme {
namespace {

// Returns the exit code of a child process that calls work(), which returns it.
template <class Work>
int exit_code_of_child(Work work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::_exit(work());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(StopFlag, TellsTheSignalThatCameFirst) {
  for (const int first : {SIGTERM, SIGUSR1, SIGUSR2, SIGINT, SIGXCPU}) {
    const StopFlag stop;
    EXPECT_EQ(stop.signal(), 0) << "earlier flags have no effect";
    std::raise(first);
    EXPECT_EQ(stop.signal(), first);
    std::raise(SIGTERM);
    std::raise(SIGUSR2);
    EXPECT_EQ(stop.signal(), first);
  }
}

// Impatience ends the process, but a scheduler may repeat its own signals.
TEST(StopFlag, ASecondInterruptEndsTheProcess) {
  EXPECT_EQ(exit_code_of_child([] {
              const StopFlag stop;
              std::raise(SIGINT);
              std::raise(SIGTERM);
              std::raise(SIGINT);
              return 1;
            }),
            128 + SIGINT);
  EXPECT_EQ(exit_code_of_child([] {
              const StopFlag stop;
              std::raise(SIGTERM);
              std::raise(SIGINT);
              return 1;
            }),
            128 + SIGINT);
  EXPECT_EQ(exit_code_of_child([] {
              const StopFlag stop;
              std::raise(SIGUSR1);
              std::raise(SIGUSR1);
              std::raise(SIGTERM);
              return 1;
            }),
            1);
}

TEST(StopFlag, GivesTheSignalsBack) {
  EXPECT_EQ(exit_code_of_child([] {
              { const StopFlag stop; }
              std::raise(SIGTERM);
              return 1;
            }),
            -SIGTERM);
  EXPECT_EQ(exit_code_of_child([] {
              std::signal(SIGUSR1, SIG_IGN);
              { const StopFlag stop; }
              std::raise(SIGUSR1);
              return 7;
            }),
            7);
}

}  // namespace
}  // namespace trireme
