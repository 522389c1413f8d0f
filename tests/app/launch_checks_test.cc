// Tests the checks of a launch. Ranks are threads, on hosts that exist by name only.
#include "src/app/site/launch_checks.h"

#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/data/recode.h"
#include "mpi/self_communicator.h"
#include "mpi/thread/thread_world.h"
#include "src/app/command/version.h"
#include "src/app/site/key_checks.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/evidence/audit_log.h"
#include "src/keys/key_file.h"
#include "src/keys/key_ring.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unprivileged.h"
#include "tests/train/small_data.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<RankPlace> places_on(const std::vector<std::string>& hosts) {
  std::vector<RankPlace> places;
  for (const std::string& host : hosts) {
    RankPlace place;
    place.rank = static_cast<int>(places.size());
    place.host = host;
    place.binding.cores = 4;
    places.push_back(place);
  }
  complete_places(places);
  return places;
}

class LaunchChecksTest : public testing::Test {
 protected:
  LaunchChecksTest() {
    config_.model.layers = 2;
    config_.model.hidden = 8;
    config_.model.heads = 2;
    config_.model.vocab = 257;
    config_.model.context = 8;
    config_.model.complete();
    config_.data.sequence = 8;
    config_.train.steps = 2;
    config_.train.global_batch = 8;
    config_.run_dir = folder_.path() / "run";
    config_.self_check = false;
  }
  // Returns the findings of `check` whose text begins with `words`.
  static std::vector<Finding> about(const std::string& words, const std::vector<Finding>& found) {
    std::vector<Finding> chosen;
    for (const Finding& finding : found) {
      if (finding.what.starts_with(words)) {
        chosen.push_back(finding);
      }
    }
    return chosen;
  }

  TempFolder folder_;
  RunConfig config_;
};

TEST_F(LaunchChecksTest, OneRankPerHostChecksTheHost) {
  config_.data.train = {{.name = "none", .path = folder_.path() / "none", .weights = {}}};
  config_.data.validation = {{.name = "held out", .path = folder_.path() / "file"}};
  write_file_durably(config_.data.validation[0].path, "x");
  const std::vector<RankPlace> places = places_on({"n1", "n1", "n2"});
  std::mutex mutex;
  std::vector<std::vector<Finding>> found(3);
  ThreadWorld(3).run([&](Communicator& world) {
    std::vector<Finding> own = LaunchChecks(config_, world, places).host({});
    append(own, LaunchChecks(config_, world, places).after_layout());
    const std::lock_guard lock(mutex);
    found[static_cast<std::size_t>(world.rank())] = own;
  });
  EXPECT_THAT(found[1], IsEmpty());
  for (const std::size_t rank : {0U, 2U}) {
    const std::vector<Finding> train = about("data.train: ", found[rank]);
    ASSERT_EQ(train.size(), 1U);
    EXPECT_EQ(train[0].severity, Severity::error);
    EXPECT_EQ(train[0].code, ExitCode::not_found);
    EXPECT_EQ(train[0].where, places[rank].host);
    EXPECT_EQ(train[0].remedy,
              "see `trireme data verify " + config_.data.train[0].path.string() + "`");
    EXPECT_EQ(about("data.validation: ", found[rank]).size(), 1U);
  }
  EXPECT_FALSE(fs::exists(config_.run_dir));
}

TEST_F(LaunchChecksTest, NoValidationSetIsNoProblem) {
  config_.data.train = {{.name = "none", .path = folder_.path() / "none", .weights = {}}};
  SelfCommunicator alone;
  const auto places = places_on({"n1"});
  std::vector<Finding> found = LaunchChecks(config_, alone, places).host({});
  append(found, LaunchChecks(config_, alone, places).after_layout());
  EXPECT_EQ(about("data.train: ", found).size(), 1U);
  EXPECT_THAT(about("data.validation: ", found), IsEmpty());
}

TEST_F(LaunchChecksTest, AFolderThatCannotBeMadeIsNamed) {
  write_file_durably(folder_.path() / "file", "");
  config_.run_dir = folder_.path() / "file/run";
  config_.checkpoint.dir = folder_.path() / "checkpoints";
  SelfCommunicator alone;
  const auto places = places_on({"n1"});
  const std::vector<Finding> found = LaunchChecks(config_, alone, places).host({});
  EXPECT_EQ(about("run.dir", found).size(), 1U);
  EXPECT_THAT(about("checkpoint.dir", found), IsEmpty());
}

TEST_F(LaunchChecksTest, AFileOfMetricsThatCannotBeWrittenOrIsForeignIsAWarning) {
  config_.metrics.openmetrics = folder_.path() / "none/x.prom";
  SelfCommunicator alone;
  const auto found = [&] { return LaunchChecks(config_, alone, places_on({"n1"})).host({}); };
  EXPECT_EQ(about("cannot write metrics.openmetrics", found()).size(), 1U);
  config_.metrics.openmetrics = folder_.path() / "other.prom";
  write_file_durably(config_.metrics.openmetrics, "node_load1 0.5\n");
  EXPECT_EQ(about("metrics.openmetrics: ", found()).size(), 1U);
}

TEST_F(LaunchChecksTest, AnAuditLogAndAKeyThatCannotBeUsedAreErrors) {
  const fs::path log = folder_.path() / "audit.jsonl";
  const fs::path key = folder_.path() / "key";
  config_.data.train = {{.name = "none", .path = folder_.path() / "none", .weights = {}}};
  SelfCommunicator alone;
  const auto places = places_on({"n1"});
  const auto found = [&](const char* name) {
    return about(name, LaunchChecks(config_, alone, places).host({}));
  };
  const auto expect = [&](const char* name, ExitCode code, const std::string& remedy) {
    const std::vector<Finding> findings = found(name);
    ASSERT_EQ(findings.size(), 1U) << name;
    EXPECT_EQ(findings[0].severity, Severity::error);
    EXPECT_EQ(findings[0].code, code) << findings[0].what;
    EXPECT_THAT(findings[0].remedy, HasSubstr(remedy));
  };
  config_.audit.key = key;
  expect("audit.key: ", ExitCode::not_found, "trireme audit keygen --out " + key.string());
  SigningKey::generate().save(key);
  EXPECT_THAT(found("audit."), IsEmpty());
  fs::permissions(key, fs::perms::owner_read | fs::perms::group_read);
  expect("audit.key: ", ExitCode::refused, "chmod 600");
  fs::permissions(key, fs::perms::owner_read);
  config_.audit.log = folder_.path() / "no/audit.jsonl";
  expect("audit.log: ", ExitCode::not_found, "create the folder");
  config_.audit.log = folder_.path();
  expect("audit.log: ", ExitCode::refused, "append to");
  config_.audit.log = log;
  EXPECT_THAT(found("audit."), IsEmpty());
  EXPECT_FALSE(fs::exists(log));
  write_file_durably(log, "typo\n");
  expect("audit.log: ", ExitCode::bad_data, "");
  fs::remove(log);
  AuditLog(log, SigningKey::load(key)).append("test", {{"n", 1}});
  EXPECT_THAT(found("audit."), IsEmpty());
  config_.audit.copies = {"syslog:" + (folder_.path() / "no.sock").string()};
  const std::vector<Finding> findings =
      about("cannot copy the audit log to syslog", LaunchChecks(config_, alone, places).host({}));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, ExitCode::io);
}

TEST_F(LaunchChecksTest, ARelativeAuditLogIsAWarning) {
  config_.audit.log = "no-such-log.jsonl";
  SelfCommunicator alone;
  const std::vector<Finding> found =
      about("audit.log: no-such-log.jsonl is a relative path",
            LaunchChecks(config_, alone, places_on({"n1"})).host({}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::warning);
}

TEST_F(LaunchChecksTest, AnAuditLogWhoseEndWasChangedIsAWarning) {
  config_.audit.log = folder_.path() / "audit.jsonl";
  config_.audit.key = folder_.path() / "key";
  SigningKey::generate().save(config_.audit.key);
  AuditLog(config_.audit.log, SigningKey::load(config_.audit.key)).append("test", {{"n", 1}});
  std::string text = read_file(config_.audit.log);
  text[text.rfind("\"sig\":\"") + 9] ^= 1;
  write_file_durably(config_.audit.log, text);
  SelfCommunicator alone;
  const std::vector<Finding> found =
      about("audit.log: the last lines", LaunchChecks(config_, alone, places_on({"n1"})).host({}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::warning);
  EXPECT_THAT(found[0].remedy, HasSubstr("trireme audit verify"));
}

TEST_F(LaunchChecksTest, AnAuditLogThatIsAheadOfTheClockIsAWarning) {
  config_.audit.log = folder_.path() / "audit.jsonl";
  SelfCommunicator alone;
  const auto warnings = [&](const std::string& time) {
    write_file_durably(
        config_.audit.log,
        fmt::format(R"({{"seq":0,"prev":"{:064}","time":"{}","event":"x"}})", 0, time) + "\n");
    return about("audit.log: the last event in ",
                 LaunchChecks(config_, alone, places_on({"n1"})).host({}));
  };
  EXPECT_THAT(warnings(utc_now()), IsEmpty());
  EXPECT_THAT(warnings("2026-01-01T00:00:00Z"), IsEmpty());
  const std::vector<Finding> found = warnings("2999-01-01T00:00:00Z");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::warning);
  EXPECT_THAT(found[0].what, HasSubstr("is of 2999-01-01T00:00:00Z, but the clock of this host"));
  EXPECT_THAT(found[0].remedy, HasSubstr("synchronize the clocks"));
}

// A start from a given step does not look at other steps.
TEST_F(LaunchChecksTest, AnUnreadableStepMattersIfTheRunMayResumeFromIt) {
  config_.checkpoint.dir = folder_.path() / "checkpoints";
  const fs::path manifest = config_.checkpoint_dir() / "step-00000002" / "manifest.json";
  fs::create_directories(manifest.parent_path());
  write_file_durably(manifest, "{}");
  forbid_reading(folder_.path(), manifest);
  const Unprivileged nobody;
  if (!nobody.bound()) {
    GTEST_SKIP() << "needs to become another user: run as root with CAP_SETUID";
  }
  SelfCommunicator alone;
  const auto places = places_on({"n1"});
  const auto refused = [&] {
    const auto found =
        about("checkpoint.dir: ", LaunchChecks(config_, alone, places).after_layout());
    return found.empty() ? ExitCode::ok : found.front().code;
  };
  EXPECT_EQ(refused(), ExitCode::refused);
  config_.checkpoint.resume = {2, ""};
  EXPECT_EQ(refused(), ExitCode::refused);
  config_.checkpoint.resume = {3, ""};
  EXPECT_EQ(refused(), ExitCode::not_found);
}

TEST_F(LaunchChecksTest, ATuningTableThatIsMissingIsNamed) {
  config_.comm_tuning = folder_.path() / "none";
  SelfCommunicator alone;
  const auto places = places_on({"n1"});
  const auto found = about("comm.tuning: ", LaunchChecks(config_, alone, places).host({}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].code, ExitCode::not_found);
}

// A start only warns if some of the checkpoints do not fit, and ends with 74 if none does.
TEST_F(LaunchChecksTest, TooLittleSpaceIsAnErrorIfNotOneCheckpointFits) {
  const SmallFileSystem disk(1 << 20);
  if (!disk.mounted()) {
    GTEST_SKIP() << "needs to mount a file system: run as root with CAP_SYS_ADMIN";
  }
  config_.checkpoint.dir = disk.path() / "checkpoints";
  config_.checkpoint.every = {1, ""};
  config_.train.steps = 100;
  SelfCommunicator alone;
  const auto places = places_on({"n1"});
  const auto found = [&] {
    return about("the checkpoints will not fit",
                 LaunchChecks(config_, alone, places).after_layout());
  };
  const auto model_of = [&](int vocab) {
    config_.model.vocab = vocab;
    return found();
  };
  EXPECT_THAT(model_of(257), IsEmpty());
  const auto some = model_of(4000);  // 4000 x 8 x 12 bytes each, with 3 at a time
  ASSERT_EQ(some.size(), 1U);
  EXPECT_EQ(some[0].severity, Severity::warning);
  const auto none = model_of(40000);
  ASSERT_EQ(none.size(), 1U);
  EXPECT_EQ(none[0].severity, Severity::error);
  EXPECT_EQ(none[0].code, ExitCode::io);
}

TEST_F(LaunchChecksTest, TheLayoutIsThatOfThePlannedRanks) {
  config_.parallel.pp = {2, ""};
  SelfCommunicator alone;
  const auto places = places_on({"n1"});
  const LaunchChecks checks(config_, alone, places);
  const std::vector<Finding> now = checks.layout({});
  ASSERT_EQ(now.size(), 1U);
  EXPECT_EQ(now[0].code, ExitCode::usage);
  EXPECT_EQ(now[0].where, "all ranks");
  EXPECT_THAT(now[0].what, HasSubstr("the number of ranks, 1,"));
  EXPECT_THAT(now[0].remedy, AllOf(HasSubstr("start the doctor as the run will be started"),
                                   HasSubstr("--ranks")));
  const std::vector<Finding> three = checks.layout({.world = 3, .per_host = 0});
  ASSERT_EQ(three.size(), 1U);
  EXPECT_THAT(three[0].what, HasSubstr("the number of ranks, 3,"));
  EXPECT_EQ(three[0].remedy.find("start the doctor"), std::string::npos);
  for (const Finding& finding : checks.layout({.world = 4, .per_host = 2})) {
    EXPECT_EQ(finding.severity, Severity::warning) << finding.what;
  }
}

TEST_F(LaunchChecksTest, RanksSeeTheFoldersOfTheirHost) {
  fs::create_directory(config_.run_dir);
  config_.train.threads = {3, ""};
  const std::vector<RankPlace> places = places_on({"n1", "n2"});
  std::mutex mutex;
  std::vector<RankFacts> facts(2);
  ThreadWorld(2).run([&](Communicator& world) {
    const RankFacts own = LaunchChecks(config_, world, places).facts("MPI 9");
    const std::lock_guard lock(mutex);
    facts[static_cast<std::size_t>(world.rank())] = own;
  });
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(facts[rank].host, places[rank].host);
    EXPECT_EQ(facts[rank].mpi, "MPI 9");
    EXPECT_EQ(facts[rank].threads, 3);
    EXPECT_EQ(facts[rank].cores, 4);
    EXPECT_EQ(facts[rank].sharers, 1);
    EXPECT_TRUE(facts[rank].shares_run_dir);
    EXPECT_TRUE(facts[rank].shares_checkpoint_dir);
  }
  EXPECT_EQ(facts[0].build, facts[1].build);
  EXPECT_THAT(facts[0].build, testing::MatchesRegex("[^ ]+ [^ ]* ?[0-9a-f]{16}"));
  // Both threads read the same clocks.
  EXPECT_NEAR(facts[0].clock_ahead_seconds, facts[1].clock_ahead_seconds, 5);
  EXPECT_TRUE(fs::is_empty(config_.run_dir));  // the mark is removed
}

TEST_F(LaunchChecksTest, WithoutAChoiceEachRankTakesItsShareOfTheCores) {
  const std::vector<RankPlace> places = places_on({"n1", "n1"});
  std::mutex mutex;
  std::vector<int> threads;
  ThreadWorld(2).run([&](Communicator& world) {
    const RankFacts own = LaunchChecks(config_, world, places).facts("");
    const std::lock_guard lock(mutex);
    threads.push_back(own.threads);
  });
  EXPECT_THAT(threads, testing::ElementsAre(2, 2));  // 4 cores, 2 ranks
}

TEST_F(LaunchChecksTest, AnImpossibleDegreeIsLeftToTheCheckOfTheLayout) {
  SelfCommunicator alone;
  const auto places = places_on({"n1"});
  config_.self_check = true;
  config_.train.threads = {1, ""};
  config_.parallel.tp = {3, ""};
  const LaunchChecks checks(config_, alone, places);
  EXPECT_THAT(checks.numbers(), IsEmpty());
}

TEST_F(LaunchChecksTest, KeysOfEncryption) {
  const fs::path key = folder_.path() / "site.key";
  config_.encryption.keys = {"file:" + key.string()};
  config_.data.train = {{.name = "none", .path = folder_.path() / "none", .weights = {}}};
  SelfCommunicator alone;
  const auto places = places_on({"n1"});
  const auto found = [&] {
    return about("encryption.keys: ", LaunchChecks(config_, alone, places).host({}));
  };
  ASSERT_FALSE(found().empty());
  EXPECT_EQ(found()[0].code, ExitCode::not_found);
  KeyFile::create(key, "site");
  for (const Finding& finding : found()) {  // this host may swap or keep core files
    EXPECT_EQ(finding.severity, Severity::warning) << finding.what;
  }
  // A plain dataset is refused beside keys, unless the configuration accepts it.
  config_.data.train = {{.name = "plain",
                         .path = pack_documents(folder_.path(), "train_plain", {lesson(500)}),
                         .weights = {}}};
  const auto about_data = [&] {
    return about("data.train: ", LaunchChecks(config_, alone, places).host({}));
  };
  ASSERT_EQ(about_data().size(), 1U);
  EXPECT_EQ(about_data()[0].code, ExitCode::refused);
  recode(
      {config_.data.train[0].path, true, dataset_key_maker(KeyRing({"file:" + key.string()})), {}},
      {});
  EXPECT_THAT(about_data(), IsEmpty());
  fs::permissions(key, fs::perms::group_read, fs::perm_options::add);
  const auto refused = found();
  ASSERT_FALSE(refused.empty());
  EXPECT_EQ(refused[0].code, ExitCode::refused);
}

TEST(KeyChecks, KnowSwapThatIsNotEncrypted) {
  const std::string title = "Filename\tType\tSize\tUsed\tPriority\n";
  EXPECT_FALSE(may_swap_in_plain(""));
  EXPECT_FALSE(may_swap_in_plain(title));
  EXPECT_FALSE(may_swap_in_plain(title + "/dev/dm-1 partition 8388604 0 -2\n"));
  EXPECT_FALSE(may_swap_in_plain(title + "/dev/zram0 partition 8388604 0 100\n"));
  EXPECT_TRUE(may_swap_in_plain(title + "/swapfile file 2097148 0 -2\n"));
  EXPECT_TRUE(
      may_swap_in_plain(title + "/dev/dm-1 partition 1 0 -2\n/dev/sda2 partition 1 0 -3\n"));
}

}  // namespace
}  // namespace trireme
