#include "src/policy/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/policy/sample_policy.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal_of_policy(const std::string& text) {
  return message_of<ConfigError>([&] { (void)parse_policy(text, "policy.yaml"); });
}

std::string refusal_of_change(const std::string& from, const std::string& to) {
  return refusal_of_policy(with(sample_policy_text(), from, to));
}

TEST(Policy, IsParsed) {
  const Policy policy = parse_policy(sample_policy_text(), "policy.yaml");
  EXPECT_EQ(policy.site.jurisdiction, "AE");
  EXPECT_THAT(policy.site.hosts, ElementsAre("n*", "login1"));
  EXPECT_THAT(policy.site.mounts, ElementsAre("/data", "/scratch"));
  EXPECT_TRUE(policy.refuses_unlabelled);
  ASSERT_EQ(policy.roles.size(), 3U);
  EXPECT_EQ(policy.roles[0].name, "trainer");
  EXPECT_EQ(policy.roles[0].grants.at(Deed::read).highest, "internal");
  EXPECT_THAT(policy.roles[0].grants.at(Deed::read).owners, ElementsAre("health"));
  EXPECT_TRUE(policy.names_accounts());
  EXPECT_EQ(policy.release->signers, 2);
  EXPECT_EQ(policy.rank_of("secret"), 2);
  EXPECT_EQ(policy.rank_of("top"), -1);
  EXPECT_EQ(policy.sha256.size(), 64U);
}

TEST(Policy, HasADefaultOrderOfClassifications) {
  const std::string text =
      with(sample_policy_text(), "classifications: [public, internal, secret]\n", "");
  EXPECT_EQ(parse_policy(text, "p").classifications, default_classifications());
}

TEST(Policy, NamesTheLineOfAMistypedWord) {
  EXPECT_THAT(
      refusal_of_change("  trainer:", "  trianer:"),
      AllOf(HasSubstr("policy.yaml:6: 'trianer' is no role"), HasSubstr("did you mean trainer?")));
  EXPECT_THAT(refusal_of_change("    groups: [root]", "    group: [root]"),
              HasSubstr("did you mean groups?"));
  EXPECT_THAT(refusal_of_change("    write:", "    wirte:"), HasSubstr("did you mean write?"));
  EXPECT_THAT(refusal_of_change("highest: internal", "higest: internal"),
              HasSubstr("did you mean highest?"));
  EXPECT_THAT(refusal_of_change("jurisdiction: AE", "juristiction: AE"),
              HasSubstr("did you mean jurisdiction?"));
  EXPECT_THAT(refusal_of_change("signers: 2", "signer: 2"), HasSubstr("did you mean signers?"));
  EXPECT_THAT(refusal_of_change("classifications:", "clasifications:"),
              HasSubstr("did you mean classifications?"));
  EXPECT_THAT(refusal_of_change("signers: 2", "signers: two"), HasSubstr("'two', not a number"));
  EXPECT_THAT(refusal_of_change("signers: 2", "signers: 0"), HasSubstr("not a number from 1"));
  EXPECT_THAT(refusal_of_policy(sample_policy_text() + "unlabelled: no\n"),
              HasSubstr("not refuse or allow"));
}

TEST(Policy, RefusesContradictions) {
  EXPECT_THAT(refusal_of_change("highest: internal", "highest: top"),
              HasSubstr("policy.yaml:7: roles.trainer.read: 'top' is not among the "
                        "classifications"));
  EXPECT_THAT(refusal_of_change("folders: [/scratch]", "folders: [/home]"),
              AllOf(HasSubstr("policy.yaml:8:"), HasSubstr("/home contradicts site.mounts")));
  EXPECT_THAT(refusal_of_change("    groups: [root]\n", ""),
              AllOf(HasSubstr("policy.yaml:6:"), HasSubstr("nobody has it")));
  EXPECT_THAT(refusal_of_change("{accounts: [custody], keys: {highest: secret, folders: [/]}}",
                                "{accounts: [custody]}"),
              HasSubstr("policy.yaml:9: roles.key_custodian is granted nothing"));
  EXPECT_THAT(refusal_of_change("groups: [daemon], export", "groups: [daemon], keys"),
              HasSubstr("the role releaser can never have 'keys'"));
  EXPECT_THAT(refusal_of_change("[public, internal, secret]", "[public, internal, public]"),
              HasSubstr("'public' twice"));
  EXPECT_THAT(refusal_of_change("above: public", "above: top"),
              HasSubstr("policy.yaml:11: release.above"));
}

TEST(Policy, RefusesWhatIsMissing) {
  EXPECT_THAT(refusal_of_policy(""), HasSubstr("lacks its version"));
  EXPECT_THAT(refusal_of_change("version: 1", "version: 2"), HasSubstr("version is '2'"));
  EXPECT_THAT(refusal_of_change("jurisdiction: AE, ", ""), HasSubstr("site.jurisdiction"));
  EXPECT_THAT(refusal_of_policy("version: 1\nsite: {jurisdiction: AE}\n"), HasSubstr("no roles"));
  EXPECT_THAT(refusal_of_change("highest: internal, folders: [/scratch]", "highest: internal"),
              HasSubstr("policy.yaml:8: roles.trainer.write lacks 'folders'"));
  EXPECT_THAT(refusal_of_change("keys: /etc/trireme/releasers.pem, ", ""),
              HasSubstr("policy.yaml:11: release lacks 'keys'"));
  EXPECT_THAT(refusal_of_change("    groups: [root]", "    groups: []"), HasSubstr("needs a list"));
}

TEST(Policy, RefusesHostileYaml) {
  EXPECT_THAT(refusal_of_policy("version: 1\nversion: 1\n"), HasSubstr("policy.yaml:"));
  EXPECT_THAT(refusal_of_policy("roles: &a {trainer: *a}\n"), HasSubstr("policy.yaml"));
  EXPECT_THAT(refusal_of_policy("[1, 2]\n"), HasSubstr("policy.yaml"));
  EXPECT_THAT(refusal_of_change("folders: [/scratch]", "folders: [/data/../etc]"),
              HasSubstr("without '..'"));
  EXPECT_THAT(refusal_of_change("folders: [/scratch]", "folders: [scratch]"),
              HasSubstr("not an absolute path"));
  EXPECT_THAT(refusal_of_change("  trainer:\n", "  trainer: {}\n  auditor:\n"),
              HasSubstr("roles.trainer is empty"));
}

TEST(Policy, SeparatesDuties) {
  EXPECT_TRUE(role_allows("trainer", Deed::write, Thing::checkpoint));
  EXPECT_FALSE(role_allows("trainer", Deed::write, Thing::dataset));
  EXPECT_FALSE(role_allows("trainer", Deed::export_plain, Thing::checkpoint));
  EXPECT_FALSE(role_allows("key_custodian", Deed::read, Thing::checkpoint));
  EXPECT_FALSE(role_allows("auditor", Deed::write, Thing::checkpoint));
}

}  // namespace
}  // namespace trireme
