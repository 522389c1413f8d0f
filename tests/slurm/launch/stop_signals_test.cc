#include "slurm/launch/stop_signals.h"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "slurm/process/child.h"
#include "tests/slurm/launch/waiting.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

bool readable(const StopSignals& signals) {
  pollfd ready{signals.fd(), POLLIN, 0};
  return ::poll(&ready, 1, 0) == 1;
}

TEST(StopSignals, EachSignalThatAsksIsReadOnce) {
  const SignalSettings settings;
  StopSignals signals;
  EXPECT_FALSE(signals.asked());
  EXPECT_FALSE(readable(signals));
  for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP}) {
    ::raise(number);
    EXPECT_TRUE(readable(signals)) << number;
    signals.hear();
    EXPECT_FALSE(readable(signals)) << number;
    EXPECT_THAT(signals.take(), ElementsAre(number));
    EXPECT_THAT(signals.take(), IsEmpty());
    EXPECT_TRUE(signals.asked());
  }
}

TEST(StopSignals, ALaunchUnderNohupIgnoresAHangUp) {
  const SignalSettings settings;
  struct sigaction before {};
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGHUP, &ignore, &before);
  StopSignals signals;
  ::raise(SIGHUP);
  EXPECT_FALSE(readable(signals));
  ::raise(SIGTERM);
  signals.hear();
  EXPECT_THAT(signals.take(), ElementsAre(SIGTERM));
  ::sigaction(SIGHUP, &before, nullptr);
}

TEST(StopSignals, AreKeptUntilTaken) {
  const SignalSettings settings;
  StopSignals signals;
  ::raise(SIGTERM);
  signals.hear();
  ::raise(SIGUSR1);
  signals.hear();
  signals.hear();
  EXPECT_THAT(signals.take(), ElementsAre(SIGTERM, SIGUSR1));
  EXPECT_TRUE(signals.asked());
}

// Children have no signal blocked. Their ends wake the supervisor, but do not ask it to stop.
TEST(StopSignals, TheEndOfAChildDoesNotAskForAStop) {
  const SignalSettings settings;
  ::signal(SIGCHLD, SIG_IGN);
  StopSignals signals;
  Child child({.argv = {"sh", "-c", "kill -TERM $$; exit 0"}});
  wait_until([&] { return readable(signals); });
  signals.hear();
  EXPECT_THAT(signals.take(), IsEmpty());
  EXPECT_FALSE(signals.asked());
  wait_until([&] { return child.poll().has_value(); });
  EXPECT_EQ(child.poll(), 128 + SIGTERM);
}

TEST(StopSignals, AClosedPipeEndsNothing) {
  const SignalSettings settings;
  ::signal(SIGPIPE, SIG_DFL);
  const StopSignals signals;
  ::raise(SIGPIPE);
  SUCCEED();
}

}  // namespace
}  // namespace trireme
