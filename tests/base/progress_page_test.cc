#include "src/base/progress_page.h"

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

TEST(ProgressPage, SaysWhatWasNoted) {
  const TempFolder folder;
  const auto path = progress_file(folder.path(), 5);
  EXPECT_EQ(path.filename(), "rank-00005");
  EXPECT_FALSE(read_progress(path));
  ProgressPage page(path, 5, 3);
  page.note(ProgressPhase::load, 0, 20);
  page.note(ProgressPhase::train, 7, 30);
  const auto read = read_progress(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->pid, ::getpid());
  EXPECT_EQ(read->rank, 5);
  EXPECT_EQ(read->attempt, 3);
  EXPECT_EQ(read->step, 7);
  EXPECT_EQ(read->begun_at, 7);
  EXPECT_EQ(read->phase, ProgressPhase::train);
  EXPECT_EQ(read->deadline_seconds, 30);
  EXPECT_EQ(read->changes, 2);
  EXPECT_EQ(read->first_step_ns, 0);
  EXPECT_EQ(read->exit_code, 0);
  page.note_error(74);
  EXPECT_EQ(read_progress(path).value().exit_code, 74);
  EXPECT_EQ(read_progress(path).value().changes, 2);
}

TEST(ProgressPage, KnowsTheFirstStepAndWhatWasSpent) {
  const TempFolder folder;
  ProgressPage page(progress_file(folder.path(), 0), 0, 1);
  page.note(ProgressPhase::train, 7, 30);
  page.note(ProgressPhase::checkpoint, 8, 30);
  page.note(ProgressPhase::train, 8, 30);
  const auto read = read_progress(progress_file(folder.path(), 0));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->begun_at, 7);
  EXPECT_GE(read->first_step_ns, read->created_ns);
  std::int64_t spent = 0;
  for (const std::int64_t ns : read->spent_ns) {
    spent += ns;
  }
  EXPECT_EQ(spent, read->changed_ns - read->created_ns);
}

TEST(ProgressPage, OutlivesItsWriter) {
  const TempFolder folder;
  const auto path = progress_file(folder.path(), 1);
  { ProgressPage(path, 1, 1).note(ProgressPhase::train, 3, 1); }
  ASSERT_TRUE(read_progress(path));
  EXPECT_EQ(read_progress(path)->step, 3);
}

TEST(ProgressPage, AnotherAttemptTakesItsPlace) {
  const TempFolder folder;
  const auto path = progress_file(folder.path(), 1);
  ProgressPage old(path, 1, 1);
  ProgressPage fresh(path, 1, 2);
  old.note(ProgressPhase::train, 99, 1);
  EXPECT_EQ(read_progress(path)->attempt, 2);
  EXPECT_EQ(read_progress(path)->step, 0);
}

TEST(ProgressPage, GarbageIsNoPage) {
  const TempFolder folder;
  const auto path = folder.path() / "page";
  for (const std::string& text :
       {std::string(), std::string("x"), std::string(kProgressBytes, '\0'),
        std::string(kProgressBytes, '\xff'), std::string(kProgressBytes * 2, 'a')}) {
    std::ofstream(path, std::ios::trunc) << text;
    EXPECT_FALSE(read_progress(path)) << text.size();
  }
}

// Flipping any single byte gives a page or none, and never an error or a crash.
TEST(ProgressPage, FlippedBytesDoNoHarm) {
  const TempFolder folder;
  const auto path = progress_file(folder.path(), 2);
  { ProgressPage(path, 2, 1).note(ProgressPhase::train, 3, 1); }
  const std::string good = read_file(path);
  for (std::size_t at = 0; at < 160; ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0xff);
    std::ofstream(path, std::ios::trunc) << bad;
    const auto read = read_progress(path);
    if (read) {
      EXPECT_GE(read->rank, 0);
      EXPECT_LT(static_cast<std::size_t>(read->phase), kProgressPhases);
    }
  }
}

// Step and deadline are written together, so that a reader never sees one without the other.
TEST(ProgressPage, ReadersSeeWholeNotes) {
  const TempFolder folder;
  const auto path = progress_file(folder.path(), 0);
  ProgressPage page(path, 0, 1);
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (std::int64_t step = 1; !stop; ++step) {
      page.note(ProgressPhase::train, step, static_cast<double>(step));
    }
  });
  int seen = 0;
  for (int i = 0; i < 2000; ++i) {
    if (const auto read = read_progress(path)) {
      EXPECT_EQ(static_cast<double>(read->step), read->deadline_seconds);
      ++seen;
    }
  }
  stop = true;
  writer.join();
  EXPECT_GT(seen, 0);
}

TEST(ProgressPage, IsAskedForByTheEnvironment) {
  const TempFolder folder;
  ::unsetenv("TRIREME_NODE_DIR");
  EXPECT_EQ(progress_page_of_environment(), nullptr);
  ::setenv("TRIREME_NODE_DIR", folder.path().c_str(), 1);
  ::setenv("TRIREME_GENERATION", "4", 1);
  ::setenv("PMIX_RANK", "6", 1);
  ::unsetenv("OMPI_COMM_WORLD_RANK");
  const auto page = progress_page_of_environment();
  ASSERT_NE(page, nullptr);
  const auto read = read_progress(progress_file(folder.path(), 6));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->attempt, 4);
  ::unsetenv("TRIREME_NODE_DIR");
}

TEST(ProgressPage, AFolderThatOthersUseIsRefused) {
  const TempFolder folder;
  const auto with = [](const std::string& path) {
    ::setenv("TRIREME_NODE_DIR", path.c_str(), 1);
    const std::string said = message_of<PolicyError>([] { (void)progress_page_of_environment(); });
    ::unsetenv("TRIREME_NODE_DIR");
    return said;
  };
  EXPECT_THAT(with("/"), testing::HasSubstr("/ is the root of the file system"));
  EXPECT_THAT(with("/usr/.."), testing::HasSubstr("is the root of the file system"));
  ASSERT_EQ(::chmod(folder.path().c_str(), 01777), 0);
  EXPECT_THAT(with(folder.path()), testing::HasSubstr("can be written to by any user"));
  ASSERT_EQ(::chmod(folder.path().c_str(), 0700), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(folder.path().c_str(), 65534, 65534), 0);
    EXPECT_THAT(with(folder.path()), testing::HasSubstr("belongs to another user"));
  }
}

TEST(ProgressPhase, NamesComeBack) {
  for (std::size_t i = 0; i < kProgressPhases; ++i) {
    const auto phase = static_cast<ProgressPhase>(i);
    EXPECT_EQ(parse_progress_phase(name_of(phase)), phase);
  }
  EXPECT_FALSE(parse_progress_phase("trains"));
}

}  // namespace
}  // namespace trireme
