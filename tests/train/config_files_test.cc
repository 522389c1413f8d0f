#include "src/train/run/config_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/file.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::UnorderedElementsAre;

TEST(ConfigFiles, AreTheSourcesAndWhatTheKeysName) {
  const TempFolder folder;
  write_file_durably(folder.path() / "site.yaml", "");
  RunConfig config;
  config.plan_cluster = "cluster.yaml";
  config.comm_tuning = "tuning.json";
  config.audit = {.log = "audit.jsonl", .key = "audit.key"};
  config.encryption.keys = {"file:a.key", "passphrase:"};
  config.metrics.openmetrics = "run.prom";
  EXPECT_THAT(files_of_config({.file = "run.yaml", .arguments = {}, .site = folder.path()}, config),
              UnorderedElementsAre("run.yaml", folder.path() / "site.yaml", "cluster.yaml",
                                   "tuning.json", "audit.jsonl", "audit.key", "a.key", "run.prom"));
}

}  // namespace
}  // namespace trireme
