#include "slurm/agent/rank_watch.h"

#include <csignal>
#include <memory>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slurm/agent/node_folder.h"
#include "slurm/process/child.h"
#include "slurm/process/proc.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/stack_dump.h"
#include "tests/support/open_files.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

TEST(RankWatch, SeesARankAndItsEnd) {
  const TempFolder folder;
  RankWatch watch(folder.path(), "aa-test", "n1");
  EXPECT_TRUE(watch.look().empty());
  ProgressPage page(progress_file(folder.path(), 3), 3, 2);
  page.note(ProgressPhase::train, 9, 30);
  const auto ranks = watch.look();
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_EQ(ranks[0].page.rank, 3);
  EXPECT_FALSE(ranks[0].gone);
  EXPECT_EQ(ranks[0].state, 'R');
  EXPECT_GE(ranks[0].lived, ranks[0].age);
}

TEST(RankWatch, ARankOfADeadProcessIsGone) {
  const TempFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    ProgressPage page(progress_file(folder.path(), 0), 0, 1);
    page.note(ProgressPhase::train, 5, 30);
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  RankWatch watch(folder.path(), "aa-test", "n1");
  while (watch.look().empty() || watch.look()[0].state != 'T') {
    ::usleep(10'000);
  }
  const auto before = watch.look();
  ::kill(child, SIGKILL);
  while (process_state(child)) {
    ::usleep(10'000);
  }
  const auto after = watch.look();
  EXPECT_TRUE(after[0].gone);
  EXPECT_EQ(after[0].page.step, 5);
  EXPECT_TRUE(is_news(before, after));
  EXPECT_FALSE(is_news(after, watch.look()));
  ::waitpid(child, nullptr, 0);
}

TEST(RankWatch, ClearsOldAttemptsOnly) {
  const auto start = [](const std::string& attempt, const std::string& node) {
    return Child({.argv = {"sleep", "60"},
                  .environment = {{"TRIREME_LAUNCH_ID", "ab-test"},
                                  {"TRIREME_NODE", node},
                                  {"TRIREME_GENERATION", attempt}}});
  };
  Child old = start("1", "n1");
  Child current = start("2", "n1");
  Child elsewhere = start("1", "n2");
  RankWatch watch("/nonexistent", "ab-test", "n1");
  EXPECT_FALSE(watch.clear(2));
  EXPECT_EQ(old.wait(10), 128 + SIGKILL);
  EXPECT_TRUE(watch.clear(2));
  EXPECT_FALSE(current.poll());
  EXPECT_FALSE(elsewhere.poll());
}

TEST(NodeFolder, HasOneAgentAtATimeAndOutlivesIt) {
  const std::string launch = fmt::format("test{}", ::getpid());
  std::filesystem::path path;
  {
    const NodeFolder folder(launch, "n1");
    path = folder.path();
    EXPECT_EQ(path, node_folder(launch, "n1"));
    EXPECT_THROW(NodeFolder(launch, "n1"), PolicyError);
  }
  EXPECT_TRUE(std::filesystem::exists(path));
  NodeFolder again(launch, "n1");
  again.remove();
  EXPECT_FALSE(std::filesystem::exists(path));
}

// A rank beyond its deadline is asked for its stack once; one within its deadline is not asked.
TEST(RankWatch, AsksRanksThatAreLateForTheirStacks) {
  const TempFolder folder;
  RankWatch watch(folder.path(), "aa-test", "n1");
  const StackDump dump(folder.path() / "stack");
  ProgressPage page(progress_file(folder.path(), 3), 3, 2);
  page.note(ProgressPhase::train, 9, 3600);
  watch.ask_late(watch.look());
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "stack"));
  page.note(ProgressPhase::train, 9, 0.001);
  while (!std::filesystem::exists(folder.path() / "stack")) {
    watch.ask_late(watch.look());
  }
  watch.ask_late(watch.look());
  const std::string text = read_file(folder.path() / "stack");
  EXPECT_EQ(text.find("process "), 0U);
  EXPECT_EQ(text.find("process ", 1), std::string::npos) << text;
}

// Another launch may take the folder for an abandoned one and remove it before it is locked.
TEST(NodeFolder, IsMadeAgainWhereItIsRemovedBeforeItIsLocked) {
  const std::string launch = fmt::format("race{}", ::getpid());
  const std::filesystem::path path = node_folder(launch, "n1");
  auto other = std::make_unique<NodeFolder>(launch, "n1");
  std::thread remover([&] {
    wait_for_descriptors(path / "lock", 2);  // the other and the one that is about to lock it
    other->remove();
    other.reset();
  });
  NodeFolder folder(launch, "n1");
  remover.join();
  EXPECT_TRUE(std::filesystem::exists(path / "lock"));
  folder.remove();
}

TEST(NodeFolder, AnAbandonedOneGoesWithTheNextLaunch) {
  const std::string dead = fmt::format("dead{}", ::getpid());
  { const NodeFolder folder(dead, "n1"); }
  ASSERT_TRUE(std::filesystem::exists(node_folder(dead, "n1")));
  NodeFolder next(fmt::format("next{}", ::getpid()), "n1");
  EXPECT_FALSE(std::filesystem::exists(node_folder(dead, "n1")));
  next.remove();
}

}  // namespace
}  // namespace trireme
