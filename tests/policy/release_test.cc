#include "src/policy/release.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/policy/sample_policy.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;

Release sample_release() {
  return {std::string(64, 'a'),
          "file:///runs/a",
          parse_label({"classification=secret"}),
          "University X",
          "joint paper",
          "sara",
          "n1",
          "2026-11-26T12:00:00Z"};
}

TEST(Release, ComesBack) {
  const Release release = parse_release(release_text(sample_release()), "r.json");
  EXPECT_EQ(release.manifest_sha256, std::string(64, 'a'));
  EXPECT_EQ(release.label, sample_release().label);
  EXPECT_EQ(release.recipient, "University X");
  EXPECT_EQ(release_text(release), release_text(sample_release()));
  Release unlabelled = sample_release();
  unlabelled.label.reset();
  EXPECT_FALSE(parse_release(release_text(unlabelled), "r.json").label);
}

TEST(Release, RefusesDamage) {
  const auto refusal = [](const std::string& from, const std::string& to) {
    return message_of<DataError>(
        [&] { (void)parse_release(with(release_text(sample_release()), from, to), "r.json"); });
  };
  EXPECT_THAT(refusal("\"version\":1", "\"version\":2"), HasSubstr("another version"));
  EXPECT_THAT(refusal("aaaa", "aaa"), HasSubstr("no SHA-256"));
  EXPECT_THAT(refusal("\"reason\"", "\"raeson\""), HasSubstr("r.json: "));
  EXPECT_THAT(refusal("\"label\":{", "\"label\":{\"x\":1,"), HasSubstr("unknown field 'x'"));
  EXPECT_THAT(refusal("{", ""), HasSubstr("r.json: "));
  EXPECT_THAT(refusal("{", "{\"also_for\":\"all\","), HasSubstr("unknown field 'also_for'"));
  EXPECT_THAT(refusal("University X", ""), HasSubstr("'recipient': it is empty"));
  EXPECT_THAT(refusal("joint paper", std::string(1001, 'x')), HasSubstr("1001 bytes"));
  Release longest = sample_release();
  longest.reason = std::string(1000, 'x');
  EXPECT_NO_THROW((void)parse_release(release_text(longest), "r.json"));
}

}  // namespace
}  // namespace trireme
