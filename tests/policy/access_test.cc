#include "src/policy/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/policy/sample_policy.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class DecisionTest : public testing::Test {
 protected:
  Decision ask(Deed deed, Thing thing, const std::optional<Label>& label) {
    std::vector<HeldRole> held;
    for (const Role& role : policy_.roles) {
      if (role.name == role_) {
        held.push_back({&role, "group test"});
      }
    }
    return decide(policy_, held, facts_, {deed, thing, place_.path, label}, place_);
  }
  Decision read(const std::vector<std::string>& words) {
    return ask(Deed::read, Thing::dataset, parse_label(words));
  }

  Policy policy_ = parse_policy(sample_policy_text(), "p");
  std::string role_ = "trainer";
  HostFacts facts_ = {"n17.example.org", "2026-11-26", "2026-11-20"};
  FilePlace place_ = {"/data/text", "/data"};
};

TEST_F(DecisionTest, AllowsWhatARoleMay) {
  const Decision decision = read({"classification=internal", "owner=health", "jurisdiction=AE"});
  EXPECT_TRUE(decision.allowed) << decision.why;
  EXPECT_EQ(decision.role, "trainer");
  EXPECT_THAT(decision.why, HasSubstr("group test"));
}

TEST_F(DecisionTest, RefusesHigherClassifications) {
  EXPECT_THAT(read({"classification=secret"}).why, HasSubstr("covers up to internal"));
  EXPECT_THAT(read({"classification=cosmic"}).why, HasSubstr("unknown here"));
}

TEST_F(DecisionTest, RefusesOtherJurisdictions) {
  const Decision decision = read({"classification=public", "jurisdiction=SA"});
  EXPECT_FALSE(decision.allowed);
  EXPECT_THAT(decision.why, HasSubstr("jurisdiction SA only, and this site is in AE"));
  Label nowhere = *parse_label({"classification=public"});
  nowhere.jurisdictions.emplace();
  EXPECT_THAT(ask(Deed::read, Thing::dataset, nowhere).why, HasSubstr("in common"));
}

TEST_F(DecisionTest, RefusesDataWithoutALabelUnlessAllowed) {
  EXPECT_THAT(read({}).why, HasSubstr("no label"));
  EXPECT_THAT(read({}).why, HasSubstr("pack it again"));
  EXPECT_THAT(ask(Deed::read, Thing::checkpoint, kUnlabelled).why, HasSubstr("train it again"));
  policy_.refuses_unlabelled = false;
  EXPECT_TRUE(read({}).allowed);
}

TEST_F(DecisionTest, RefusesOtherOwners) {
  EXPECT_THAT(read({"classification=public", "owner=army,health"}).why, HasSubstr("owner army"));
}

TEST_F(DecisionTest, RefusesAfterTheRetention) {
  EXPECT_TRUE(read({"classification=public", "retention=2026-11-26"}).allowed);
  EXPECT_THAT(read({"classification=public", "retention=2026-11-25"}).why, HasSubstr("has ended"));
}

TEST_F(DecisionTest, RefusesToJudgeARetentionByAClockThatIsBehindThePolicy) {
  facts_.today = "2026-11-20";
  EXPECT_TRUE(read({"classification=public", "retention=2026-11-25"}).allowed);
  facts_.today = "2026-11-19";
  EXPECT_TRUE(read({"classification=public"}).allowed);
  const Decision decision = read({"classification=public", "retention=2026-11-25"});
  EXPECT_FALSE(decision.allowed);
  EXPECT_THAT(decision.why, HasSubstr("at 2026-11-19, is behind"));
}

TEST_F(DecisionTest, RefusesOtherHosts) {
  facts_.host = "login1";
  EXPECT_TRUE(read({"classification=public"}).allowed);
  facts_.host = "login2";
  EXPECT_THAT(read({"classification=public"}).why, HasSubstr("site.hosts"));
}

TEST_F(DecisionTest, RefusesOtherFileSystems) {
  place_.mount = "/data/usb";
  EXPECT_THAT(read({"classification=public"}).why, HasSubstr("site.mounts"));
}

TEST_F(DecisionTest, RefusesOtherFolders) {
  place_ = {"/data/text", "/data"};
  EXPECT_THAT(ask(Deed::write, Thing::checkpoint, parse_label({"classification=public"})).why,
              HasSubstr("does not cover /data/text"));
  place_ = {"/scratch2/run", "/scratch"};  // is not below /scratch
  EXPECT_FALSE(ask(Deed::write, Thing::checkpoint, parse_label({"classification=public"})).allowed);
}

TEST_F(DecisionTest, RefusesWhatNoRoleMay) {
  const auto label = parse_label({"classification=public"});
  EXPECT_THAT(ask(Deed::export_plain, Thing::checkpoint, label).why,
              HasSubstr("the role trainer cannot export a checkpoint"));
  role_ = "nobody";
  EXPECT_THAT(read({"classification=public"}).why, HasSubstr("no role of the policy"));
}

TEST_F(DecisionTest, SeparatesDatasetsFromCheckpoints) {
  place_ = {"/scratch/run", "/scratch"};
  const auto label = parse_label({"classification=public"});
  EXPECT_TRUE(ask(Deed::write, Thing::checkpoint, label).allowed);
  EXPECT_THAT(ask(Deed::write, Thing::dataset, label).why,
              HasSubstr("the role trainer cannot write a dataset"));
}

TEST(Access, AllowsEverythingWithoutAPolicy) {
  const Access access = Access::of_this_host("/var/lib/no-such-site/policy.yaml");
  EXPECT_FALSE(access.has_policy());
  access.check({Deed::read, Thing::dataset, "/nowhere", kUnlabelled});
  EXPECT_THAT(access.refusal({Deed::keys, Thing::dataset, "/", kUnlabelled}), IsEmpty());
}

}  // namespace
}  // namespace trireme
