// The checks of `trireme doctor` on datasets, transports and filters of system calls, one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/app/site/dataset_checks.h"
#include "src/app/site/transport_checks.h"
#include "src/app/site/writer_checks.h"
#include "tests/io/data/encrypted_data.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class DatasetChecks : public EncryptedDataTest {
 protected:
  void SetUp() override {
    write("in/a.txt", std::string(100, 'a'));
    pack(options("in", "set"), {});
    config_.model.vocab = 257;
    config_.data.sequence = 8;
  }
  // Returns the only finding about the folder.
  Finding fault(const std::string& name) {
    std::vector<Finding> found;
    EXPECT_FALSE(check_dataset("data.validation", folder_ / name, config_, "n1", found));
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? Finding{} : found.front();
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  RunConfig config_;
};

TEST_F(DatasetChecks, AGoodDatasetIsReturned) {
  std::vector<Finding> found;
  const auto dataset = check_dataset("data.validation", folder_ / "set", config_, "n1", found);
  EXPECT_TRUE(found.empty());
  ASSERT_TRUE(dataset.has_value());
  EXPECT_EQ(dataset->folder(), folder_ / "set");
  EXPECT_FALSE(check_dataset("data.validation", "", config_, "n1", found).has_value());
  EXPECT_TRUE(found.empty()) << "none is configured";
}

TEST_F(DatasetChecks, AFaultNamesTheKeyTheHostAndWhatToDo) {
  const Finding absent = fault("absent");
  EXPECT_EQ(absent.severity, Severity::error);
  EXPECT_EQ(absent.code, ExitCode::not_found);
  EXPECT_EQ(absent.where, "n1");
  EXPECT_THAT(absent.what, testing::StartsWith("data.validation: "));
  EXPECT_EQ(absent.remedy, "see `trireme data verify " + path("absent") + "`");
  put(path("set/manifest.json"), "{");
  EXPECT_EQ(fault("set").code, ExitCode::bad_data);
}

TEST_F(DatasetChecks, AConfigurationThatDoesNotFitHasItsOwnAdvice) {
  config_.model.vocab = 256;
  const Finding small = fault("set");
  EXPECT_EQ(small.code, ExitCode::usage);
  EXPECT_THAT(small.what, HasSubstr("of 257 ids, but model.vocab is 256: raise it to 257"));
  EXPECT_THAT(small.remedy, testing::Not(HasSubstr("data verify")));
  config_.model.vocab = 257;
  config_.data.sequence = 1000;
  EXPECT_THAT(fault("set").what, testing::StartsWith("data."));
}

TEST_F(DatasetChecks, EncryptionIsThatOfTheSite) {
  pack(sealed_options("in", "sealed"), {});
  EXPECT_EQ(fault("sealed").code, ExitCode::refused) << "no key is configured";
  config_.encryption.keys = {uri_};
  std::vector<Finding> found;
  EXPECT_TRUE(check_dataset("data.train", folder_ / "sealed", config_, "n1", found).has_value());
  EXPECT_EQ(fault("set").code, ExitCode::refused) << "plain data is refused where keys are";
  config_.encryption.accept_plain_data = true;
  EXPECT_TRUE(check_dataset("data.train", folder_ / "set", config_, "n1", found).has_value());
  EXPECT_TRUE(found.empty());
}

TEST_F(DatasetChecks, TrainingDataNeedsAllItsSources) {
  config_.data.train = {{"a", folder_ / "set", {}, 0}, {"b", folder_ / "absent", {}, 0}};
  config_.train.steps = 1;
  config_.train.global_batch = 1;
  std::vector<Finding> found;
  EXPECT_FALSE(check_training_data(config_, "n1", found).has_value());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].what, testing::StartsWith("data.train.b: "));
  found.clear();
  config_.data.train.pop_back();
  EXPECT_TRUE(check_training_data(config_, "n1", found).has_value());
  EXPECT_TRUE(found.empty());
  config_.data.train.clear();
  EXPECT_FALSE(check_training_data(config_, "n1", found).has_value());
  EXPECT_TRUE(found.empty());
}

TEST(WriterChecks, FilesOfTheSiteThatAGroupCanChangeAreWarnings) {
  const TempFolder folder;
  const fs::path module = folder.path() / "module.so";
  for (const fs::path& file : {folder.path() / "site.yaml", folder.path() / "revoked-keys",
                               folder.path() / "notes.txt", module}) {
    write_file_durably(file, "");
    fs::permissions(file, fs::perms::group_write, fs::perm_options::add);
  }
  RunConfig config;
  config.encryption.keys = {"file:a", "pkcs11:token=t;object=o?module-path=" + module.string()};
  const std::vector<Finding> found = check_writers(config, {folder.path(), "/none"}, "n1");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_THAT(found[0].what, HasSubstr("revoked-keys can be changed by every member of its group"));
  EXPECT_THAT(found[1].what, HasSubstr("site.yaml"));
  EXPECT_THAT(found[2].what, HasSubstr("module.so"));
}

TEST(CheckKey, NamesTheKeyUnlessTheMessageDoes) {
  std::vector<Finding> found;
  check_key("data.train", "n1", found, [] { throw NotFound("gone"); });
  check_key("data.train", "n1", found, [] { throw NotFound("data.train.a: gone"); });
  check_key("data.train", "n1", found, [] {});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].what, "data.train: gone");
  EXPECT_EQ(found[1].what, "data.train.a: gone");
}

TEST(TransportChecks, NothingIsDemandedByDefault) {
  EXPECT_THAT(check_transport({}, "n1", true), IsEmpty());
}

TEST(TransportChecks, ATunnelIsNeededBetweenHostsOnly) {
  SecurityConfig config;
  config.transport = "tunnel:nowg7";
  EXPECT_THAT(check_transport(config, "n1", false), IsEmpty());
  const std::vector<Finding> found = check_transport(config, "n1", true);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].severity, Severity::error);
  EXPECT_EQ(found[0].code, ExitCode::refused);
  EXPECT_EQ(found[0].where, "n1");
  EXPECT_THAT(found[0].what,
              AllOf(testing::StartsWith("security.transport: tunnel:nowg7: "), HasSubstr("nowg7")));
  EXPECT_NE(found[0].remedy, "");
}

TEST(TransportChecks, AWrongRuleIsOneFinding) {
  SecurityConfig config;
  config.transport = "isolated";
  const std::vector<Finding> found = check_transport(config, "n1", true);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].code, ExitCode::usage);
}

TEST(TransportChecks, FiltersAreCheckedOnDemand) {
  EXPECT_THAT(check_seccomp({}, "n1"), IsEmpty());
  SecurityConfig config;
  config.seccomp = true;
  const std::vector<Finding> found = check_seccomp(config, "n1");
  for (const Finding& each : found) {  // on a kernel that cannot filter
    EXPECT_EQ(each.code, ExitCode::refused);
    EXPECT_THAT(each.what,
                testing::StartsWith("security.seccomp: system calls cannot be filtered"));
  }
  EXPECT_LE(found.size(), 1U);
}

TEST(TransportChecks, LocksOfMemoryAreCheckedOnDemand) {
  EXPECT_THAT(check_memory_lock({}, "n1"), IsEmpty());
  SecurityConfig config;
  config.lock_memory = true;
  const std::vector<Finding> found = check_memory_lock(config, "n1");
  for (const Finding& each : found) {  // where the limit is low
    EXPECT_EQ(each.code, ExitCode::refused);
    EXPECT_THAT(each.what, testing::StartsWith("security.lock_memory: a process may lock only"));
  }
  EXPECT_LE(found.size(), 1U);
}

TEST(TransportChecks, RanksSpanHostsIfAnyIsElsewhere) {
  std::vector<RankPlace> places(3);
  for (RankPlace& place : places) {
    place.host = "n1";
  }
  EXPECT_FALSE(spans_hosts(places));
  places[2].host = "n2";
  EXPECT_TRUE(spans_hosts(places));
}

}  // namespace
}  // namespace trireme
