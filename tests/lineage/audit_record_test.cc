#include "src/lineage/audit_record.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace trireme {
namespace {

using nlohmann::json;

constexpr const char* kFolder = "/run/checkpoints";

class AuditRecordTest : public testing::Test {
 protected:
  void take(const char* event, const json& details) {
    const json line = {{"event", event}, {"details", details}};
    record_.take("log", ++line_, json::parse(line.dump()));  // numbers as a log has them
  }
  void save(int step, const char* sha256, const std::string& folder = kFolder) {
    take("checkpoint.saved",
         {{"folder", fmt::format("{}/step-{:08}", folder, step)}, {"manifest_sha256", sha256}});
  }
  void deleted(int step, const char* sha256) {
    take("checkpoint.deleted",
         {{"folder", fmt::format("{}/step-{:08}", kFolder, step)}, {"manifest_sha256", sha256}});
  }
  const AuditRecord::Step& step(int number) const {
    return record_.steps_of(kFolder)->by_number.at(number);
  }

  std::int64_t line_ = 0;
  AuditRecord record_{{kFolder}, [](const std::string& stated) {
                        return stated == "/old/checkpoints" ? kFolder : stated;
                      }};
};

TEST_F(AuditRecordTest, HoldsSavesAndDeletions) {
  EXPECT_EQ(record_.steps_of(kFolder), nullptr);
  save(2, "a");
  save(4, "b");
  save(4, "c");
  deleted(2, "a");
  ASSERT_NE(record_.steps_of(kFolder), nullptr);
  EXPECT_EQ(step(2).deleted, "line 4 of log");
  ASSERT_EQ(step(4).saves.size(), 2U);
  EXPECT_EQ(step(4).saves[0].manifest_sha256, "b");
  EXPECT_EQ(step(4).saves[1].where, "line 3 of log");
  EXPECT_EQ(step(4).deleted, "");
  save(2, "d");
  EXPECT_EQ(step(2).deleted, "") << "it was saved again";
}

TEST_F(AuditRecordTest, ALateRecordOfADeletionIsNoneOfTheNewSave) {
  save(2, "a");
  save(2, "b");
  deleted(2, "a");
  EXPECT_EQ(step(2).deleted, "");
  deleted(2, "b");
  EXPECT_EQ(step(2).deleted, "line 4 of log");
  deleted(6, "x");
  EXPECT_EQ(record_.steps_of(kFolder)->by_number.size(), 1U);
}

TEST_F(AuditRecordTest, CountsOnlyItsFolders) {
  save(2, "a", "/other/checkpoints");
  save(2, "a", "/run");
  EXPECT_EQ(record_.steps_of(kFolder), nullptr);
  EXPECT_EQ(record_.steps_of("/other/checkpoints"), nullptr);
  save(2, "a", "/old/checkpoints");
  EXPECT_EQ(step(2).saves.size(), 1U);
}

TEST_F(AuditRecordTest, TakesWhatPruneAndEraseHaveDeleted) {
  for (const int number : {2, 4, 6, 8}) {
    save(number, "a");
  }
  take("ckpt.prune.end",
       {{"folder", kFolder}, {"deleted", 1}, {"steps", {{{"step", 2}, {"manifest_sha256", "a"}}}}});
  EXPECT_EQ(step(2).deleted, "line 5 of log");
  EXPECT_FALSE(record_.steps_of(kFolder)->has_unnamed_deletions);
  take("checkpoint.erased", {{"folder", "/run/checkpoints/step-00000004"}});
  EXPECT_EQ(step(4).deleted, "line 6 of log");
  EXPECT_EQ(step(6).deleted, "");
  take("ckpt.prune.end", {{"folder", kFolder}, {"deleted", 2}, {"steps", json::array()}});
  EXPECT_TRUE(record_.steps_of(kFolder)->has_unnamed_deletions);
  take("checkpoint.erased", {{"folder", kFolder}});
  EXPECT_EQ(step(8).deleted, "line 8 of log");
}

TEST_F(AuditRecordTest, HoldsTheStartsOfEncryptedLogs) {
  take("logs.begun", {{"logs", "run"}, {"start", 3}, {"key", "k"}});
  take("logs.closed", {{"logs", "run"}, {"start", 3}, {"key", "k"}, {"sha256", "s"}});
  take("logs.closed", {{"logs", "run"}, {"start", 4}, {"key", "unknown"}, {"sha256", "s"}});
  ASSERT_EQ(record_.starts().size(), 1U);
  const AuditRecord::Start& start = record_.starts().at("k");
  EXPECT_EQ(start.start.run, "run");
  EXPECT_EQ(start.start.number, 3);
  EXPECT_EQ(start.closed_sha256, "s");
}

TEST_F(AuditRecordTest, LinesOfAnotherFormSayNothing) {
  record_.take("log", 1, json::array());
  record_.take("log", 2, {{"event", 5}});
  record_.take("log", 3, {{"event", "checkpoint.saved"}});
  record_.take("log", 4, {{"event", "checkpoint.saved"}, {"details", "none"}});
  take("checkpoint.saved", {{"folder", 7}});
  take("checkpoint.saved", {{"folder", "/run/checkpoints/step-x"}});
  take("ckpt.prune.end", {{"folder", kFolder}, {"deleted", -1}, {"steps", {1}}});
  take("checkpoint.erased", json::object());
  take("logs.begun", {{"key", "k"}, {"logs", "run"}, {"start", "first"}});
  EXPECT_TRUE(record_.starts().empty());
  const AuditRecord::Steps* const steps = record_.steps_of(kFolder);
  EXPECT_TRUE(steps == nullptr || steps->by_number.empty());
}

}  // namespace
}  // namespace trireme
