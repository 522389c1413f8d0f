#include "src/train/saving/deleted_steps.h"

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace trireme {
namespace {

StepFolder step_in(const char* folder, std::int64_t number) {
  StepFolder step;
  step.path = folder;
  step.step = number;
  step.manifest_sha256 = std::string(64, 'a');
  return step;
}

TEST(DeletedSteps, EachIsRecordedOnce) {
  DeletedSteps deleted;
  std::vector<std::string> recorded;
  const DeletedSteps::Audit audit = [&](std::string_view event, const auto& details) {
    recorded.push_back(std::string(event) + " " + details.dump());
  };
  deleted.record(audit);
  EXPECT_THAT(recorded, testing::IsEmpty());
  std::thread([&] {
    deleted.add(step_in("/runs/a/step-00000002", 2));
    deleted.add(step_in("/runs/a/../a/step-00000004", 4));
  }).join();
  deleted.record(audit);
  deleted.record(audit);
  EXPECT_THAT(recorded, testing::ElementsAre(
                            R"(checkpoint.deleted {"step":2,"folder":"/runs/a/step-00000002",)"
                            R"("manifest_sha256":")" +
                                std::string(64, 'a') + "\"}",
                            testing::HasSubstr(R"("folder":"/runs/a/step-00000004")")));
  deleted.add(step_in("/runs/a/step-00000006", 6));
  deleted.record({});
  deleted.record(audit);
  EXPECT_EQ(recorded.size(), 2U);
}

}  // namespace
}  // namespace trireme
