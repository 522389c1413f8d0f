#include "slurm/doctor/node_checks.h"

#include <array>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "tests/support/unprivileged.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(NodeChecks, Limits) {
  EXPECT_THAT(check_limits({ProcessLimits::kNoLimit, ProcessLimits::kNoLimit}, 100000, true, "n"),
              IsEmpty());
  EXPECT_THAT(check_limits({65536, 1024}, 100, false, "n"), IsEmpty());
  const auto few_files = check_limits({65536, 1024}, 1000, false, "n");
  ASSERT_THAT(few_files, SizeIs(1));
  EXPECT_EQ(few_files[0].severity, Severity::error);
  EXPECT_THAT(few_files[0].what, HasSubstr("3256"));
  const auto locked = check_limits({65536, 1024}, 4, true, "n");
  ASSERT_THAT(locked, SizeIs(1));
  EXPECT_THAT(locked[0].remedy, HasSubstr("ulimit -l"));
}

TEST(NodeChecks, LimitsWithWhichNothingCouldRun) {
  EXPECT_THAT(check_least_limits({}, "n"), IsEmpty());
  constexpr std::int64_t kMib = 1 << 20;
  EXPECT_THAT(check_least_limits({0, 64, kMib, 400 * kMib, kMib}, "n"), IsEmpty());
  const std::vector<Finding> found = check_least_limits({0, 20, 1024, 300 * kMib, kMib / 16}, "n7");
  ASSERT_THAT(found, SizeIs(4));
  const std::array<const char*, 4> options = {"ulimit -n", "ulimit -f", "ulimit -v", "ulimit -s"};
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_THAT(found[i].what, HasSubstr(options[i]));
    EXPECT_THAT(found[i].remedy, HasSubstr(options[i]));
    EXPECT_EQ(found[i].where, "n7");
    EXPECT_EQ(found[i].severity, Severity::error);
    EXPECT_EQ(found[i].code, ExitCode::usage);
  }
  EXPECT_THAT(check_limits({0, 20}, 1000, false, "n"), SizeIs(1)) << "one finding per limit";
}

TEST(NodeChecks, AForgottenLauncher) {
  const auto job_of = [](const char* tasks) {
    return [tasks](const std::string& name) -> std::optional<std::string> {
      return name == "SLURM_JOB_ID"   ? std::optional<std::string>("7")
             : name == "SLURM_NTASKS" ? std::optional<std::string>(tasks)
                                      : std::nullopt;
    };
  };
  EXPECT_THAT(check_tasks(job_of("1"), 1, "n"), IsEmpty());
  EXPECT_THAT(check_tasks(job_of("8"), 8, "n"), IsEmpty());
  EXPECT_THAT(check_tasks([](const std::string&) { return std::nullopt; }, 1, "n"), IsEmpty());
  const auto found = check_tasks(job_of("8"), 1, "n");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].what, HasSubstr("job 7 has 8 tasks"));
}

TEST(NodeChecks, SharedMemory) {
  const TempFolder folder;
  EXPECT_THAT(check_shared_memory(folder.path() / "absent", 0, 1, "n"), SizeIs(1));
  EXPECT_THAT(check_shared_memory(folder.path(), std::int64_t{1} << 60, 1, "n"), SizeIs(1));
  const SmallFileSystem small(1 << 20);
  if (!small.mounted()) {
    GTEST_SKIP() << "needs to mount a file system: run as root with CAP_SYS_ADMIN";
  }
  const auto found = check_shared_memory(small.path(), 0, 1, "n");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].severity, Severity::warning);
}

TEST(NodeChecks, FoldersToBeMade) {
  const TempFolder folder;
  const auto deep = folder.path() / "a" / "b" / "c";
  EXPECT_EQ(nearest_folder(deep), folder.path());
  EXPECT_THAT(check_folder("run.dir", deep, 1000, "n"), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  const auto large = check_folder("run.dir", deep, std::int64_t{1} << 60, "n");
  ASSERT_THAT(large, SizeIs(1));
  EXPECT_EQ(large[0].code, ExitCode::io);
  std::ofstream(folder.path() / "file") << "x";
  EXPECT_THAT(check_folder("run.dir", folder.path() / "file", 0, "n"), SizeIs(1));
}

TEST(NodeChecks, AFileWhereAFolderShouldBe) {
  const TempFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  for (const char* below : {"file/run", "file/a/b"}) {
    const auto found = check_folder("run.dir", folder.path() / below, 0, "n");
    ASSERT_THAT(found, SizeIs(1)) << below;
    EXPECT_EQ(found[0].code, ExitCode::usage);
    EXPECT_THAT(found[0].what, HasSubstr("file is not a folder"));
  }
}

// A start refuses such a folder as a mistake in the configuration.
TEST(NodeChecks, AReadOnlyFileSystemIsWrongUsage) {
  const SmallFileSystem disk(1 << 20);
  if (!disk.mounted()) {
    GTEST_SKIP() << "needs to mount a file system: run as root with CAP_SYS_ADMIN";
  }
  ASSERT_EQ(::mount(nullptr, disk.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
  const auto found = check_folder("run.dir", disk.path() / "run", 0, "n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].code, ExitCode::usage);
}

TEST(NodeChecks, AFolderThatCannotBeCreatedIsAWrongConfiguration) {
  const auto found = check_folder("run.dir", "/proc/foo", 0, "n");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].code, ExitCode::usage);
}

TEST(NodeChecks, RootHasToTellMpirunTwice) {
  const auto with = [](const char* second) {
    return [second](const std::string& name) -> std::optional<std::string> {
      return name == "OMPI_ALLOW_RUN_AS_ROOT"           ? std::optional<std::string>("1")
             : name == "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM" ? std::optional<std::string>(second)
                                                        : std::nullopt;
    };
  };
  EXPECT_THAT(check_user_of_mpirun(1000, with(""), "n"), IsEmpty());
  EXPECT_THAT(check_user_of_mpirun(0, with("1"), "n"), IsEmpty());
  EXPECT_THAT(check_user_of_mpirun(0, with(""), "n"), SizeIs(1));
}

TEST(NodeChecks, LogindThatCleansUpSharedMemory) {
  constexpr std::uint32_t kUser = 54321;
  const TempFolder root;
  const auto write = [&](const char* name, const char* text) {
    std::filesystem::create_directories((root.path() / name).parent_path());
    std::ofstream(root.path() / name) << text;
  };
  EXPECT_THAT(check_logind(root.path(), kUser, "n"), IsEmpty());  // without logind
  std::filesystem::create_directories(root.path() / "run/systemd/sessions");
  EXPECT_THAT(check_logind(root.path(), kUser, "n"), IsEmpty());  // a container without systemd
  std::filesystem::create_directories(root.path() / "run/systemd/system");
  EXPECT_THAT(check_logind(root.path(), kUser, "n"), SizeIs(1));  // logind removes files by default
  EXPECT_THAT(check_logind(root.path(), 0, "n"), IsEmpty());
  write("etc/systemd/logind.conf", "[Login]\n#RemoveIPC=yes\nRemoveIPC=no\n");
  EXPECT_THAT(check_logind(root.path(), kUser, "n"), IsEmpty());
  write("usr/lib/systemd/logind.conf.d/50-site.conf", "[Login]\nRemoveIPC=yes\n");
  EXPECT_THAT(check_logind(root.path(), kUser, "n"), SizeIs(1));
  write("etc/systemd/logind.conf.d/50-site.conf", "[Login]\nRemoveIPC=false\n");
  EXPECT_THAT(check_logind(root.path(), kUser, "n"), IsEmpty());
}

TEST(NodeChecks, FoldersOfOthers) {
  const TempFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all |
                                                  std::filesystem::perms::others_exec |
                                                  std::filesystem::perms::others_read);
  const Unprivileged user;
  if (!user.bound()) {
    GTEST_SKIP() << "needs to become another user: run as root with CAP_SETUID";
  }
  const auto found = check_folder("run.dir", folder.path() / "run", 0, "n");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].code, ExitCode::refused);
}

}  // namespace
}  // namespace trireme
