#include "src/train/ending/stop_flag.h"

#include <csignal>
#include <optional>
#include <thread>

#include <gtest/gtest.h>
#include <sched.h>
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

// Sends a signal to this process, and waits until a thread has received it.
void send(int number) {
  ::kill(::getpid(), number);
  sigset_t pending;
  do {
    ::sched_yield();
    ::sigpending(&pending);
  } while (::sigismember(&pending, number) == 1);
}

void wait_for(const StopFlag& stop) {
  while (stop.signal() == 0) {
    ::sched_yield();
  }
}

TEST(StopFlag, TellsTheSignalThatCameFirst) {
  for (const int first : {SIGTERM, SIGUSR1, SIGUSR2, SIGINT, SIGXCPU}) {
    const StopFlag stop;
    EXPECT_EQ(stop.signal(), 0) << "earlier flags have no effect";
    send(first);
    wait_for(stop);
    EXPECT_EQ(stop.signal(), first);
    send(SIGTERM);
    send(SIGUSR2);
    EXPECT_EQ(stop.signal(), first);
  }
}

// A computing thread's stack pointer may be one on which a handler must not run.
TEST(StopFlag, BlocksTheSignalsOnThreadsThatCompute) {
  const StopFlag stop;
  sigset_t mask;
  std::thread([&] { ::pthread_sigmask(SIG_BLOCK, nullptr, &mask); }).join();
  for (const int number : {SIGTERM, SIGUSR1, SIGUSR2, SIGINT, SIGXCPU, SIGHUP}) {
    EXPECT_EQ(::sigismember(&mask, number), 1) << number;
  }
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  EXPECT_EQ(::sigismember(&mask, SIGTERM), 1);
}

// A second interrupt ends the process, but a scheduler may repeat its own signals.
TEST(StopFlag, ASecondInterruptEndsTheProcess) {
  EXPECT_EQ(exit_code_of_child([] {
              const StopFlag stop;
              send(SIGINT);
              wait_for(stop);
              send(SIGTERM);
              send(SIGINT);
              ::sleep(60);
              return 1;
            }),
            128 + SIGINT);
  EXPECT_EQ(exit_code_of_child([] {
              const StopFlag stop;
              send(SIGTERM);
              wait_for(stop);
              send(SIGINT);
              ::sleep(60);
              return 1;
            }),
            128 + SIGINT);
  EXPECT_EQ(exit_code_of_child([] {
              const StopFlag stop;
              send(SIGUSR1);
              wait_for(stop);
              send(SIGUSR1);
              send(SIGTERM);
              return 1;
            }),
            1);
}

TEST(StopFlag, ARepeatedSignalDoesNotEndAProcessThatStops) {
  const auto stopped_then = [](int number) {
    return exit_code_of_child([number] {
      {
        const StopFlag stop;
        send(SIGTERM);
        wait_for(stop);
      }
      std::raise(number);
      return 7;
    });
  };
  EXPECT_EQ(stopped_then(SIGTERM), 7);
  EXPECT_EQ(stopped_then(SIGUSR1), 7);
  EXPECT_EQ(stopped_then(SIGINT), -SIGINT);
}

TEST(StopFlag, GivesTheSignalsBack) {
  EXPECT_EQ(exit_code_of_child([] {
              std::signal(SIGTERM, SIG_DFL);
              { const StopFlag stop; }
              std::raise(SIGTERM);
              return 1;
            }),
            -SIGTERM);
  EXPECT_EQ(exit_code_of_child([] {
              {
                const StopFlag stop;
                ::kill(::getpid(), SIGHUP);
              }
              return 7;
            }),
            7);
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
