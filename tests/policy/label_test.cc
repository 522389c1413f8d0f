#include "src/policy/label.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string>& order() { return default_classifications(); }

Label labelled(const std::vector<std::string>& words) { return parse_label(words).value(); }

TEST(Label, IsParsedFromWords) {
  const Label label = labelled({"classification=secret", "jurisdiction=SA,AE", "owner=health",
                                "owner=army", "retention=2028-02-29"});
  EXPECT_EQ(label.classification, "secret");
  EXPECT_THAT(*label.jurisdictions, ElementsAre("AE", "SA"));
  EXPECT_THAT(label.owners, ElementsAre("army", "health"));
  EXPECT_EQ(label.to_string(), "secret; jurisdiction AE, SA; owner army, health; until 2028-02-29");
  EXPECT_FALSE(parse_label({}));
}

TEST(Label, RefusesWrongWords) {
  const auto refusal = [](const std::vector<std::string>& words) {
    return message_of<ConfigError>([&] { (void)parse_label(words); });
  };
  EXPECT_THAT(refusal({"secret"}), HasSubstr("KEY=VALUE"));
  EXPECT_THAT(refusal({"classification="}), HasSubstr("KEY=VALUE"));
  EXPECT_THAT(refusal({"owner=health"}), HasSubstr("needs a classification"));
  EXPECT_THAT(refusal({"classification=secret", "classification=public"}), HasSubstr("twice"));
  EXPECT_THAT(refusal({"clasification=secret"}), HasSubstr("did you mean classification"));
  EXPECT_THAT(refusal({"classification=secret", "owner=a,,b"}), HasSubstr("cannot stand"));
  EXPECT_THAT(refusal({"classification=\x1b[31m"}), HasSubstr("cannot stand"));
  EXPECT_THAT(refusal({"classification=a\x1b[31mb"}), HasSubstr("cannot stand"));
  EXPECT_THAT(refusal({"classification=a", "retention=2027-02-29"}), HasSubstr("not a day"));
  EXPECT_THAT(refusal({"classification=a", "retention=2027-13-01"}), HasSubstr("not a day"));
  EXPECT_THAT(refusal({"classification=a", "retention=tomorrow"}), HasSubstr("not a day"));
}

TEST(Label, JoinRestrictsAsMuchAsBoth) {
  const Label a = labelled(
      {"classification=internal", "jurisdiction=AE,SA", "owner=x", "retention=2030-01-01"});
  const Label b = labelled({"classification=secret", "jurisdiction=SA,QA", "owner=y"});
  const Label both = join(a, b, order()).value();
  EXPECT_EQ(both.to_string(), "secret; jurisdiction SA; owner x, y; until 2030-01-01");
}

TEST(Label, JoinTakesTheEarlierEnd) {
  const Label early = labelled({"classification=public", "retention=2030-01-01"});
  const Label late = labelled({"classification=public", "retention=2031-01-01"});
  EXPECT_EQ(join(early, late, order())->retention, "2030-01-01");
  EXPECT_EQ(join(late, early, order())->retention, "2030-01-01");
}

// Joining labels must be associative, commutative and idempotent (a semilattice), in every field.
TEST(Label, JoinIsALattice) {
  std::vector<std::optional<Label>> all = {kUnlabelled};
  for (const char* const classification : {"public", "secret"}) {
    for (const char* const places : {"", "jurisdiction=AE", "jurisdiction=AE,SA"}) {
      for (const char* const end : {"", "retention=2030-01-01", "retention=2031-01-01"}) {
        std::vector<std::string> words = {std::string("classification=") + classification,
                                          std::string("owner=") + classification};
        for (const std::string more : {places, end}) {
          if (!more.empty()) {
            words.push_back(more);
          }
        }
        all.push_back(labelled(words));
      }
    }
  }
  for (const auto& a : all) {
    EXPECT_EQ(join(a, a, order()), a);
    for (const auto& b : all) {
      EXPECT_EQ(join(a, b, order()), join(b, a, order()));
      for (const auto& c : all) {
        EXPECT_EQ(join(join(a, b, order()), c, order()), join(a, join(b, c, order()), order()));
      }
    }
  }
}

TEST(Label, JoinOfForeignJurisdictionsAllowsNone) {
  const Label both = join(labelled({"classification=public", "jurisdiction=AE"}),
                          labelled({"classification=public", "jurisdiction=SA"}), order())
                         .value();
  ASSERT_TRUE(both.jurisdictions);
  EXPECT_TRUE(both.jurisdictions->empty());
  EXPECT_EQ(label_of({{"label", nlohmann::json(to_json(both))}}), both);
}

TEST(Label, JoinNeedsAnOrderOfUnequalClassifications) {
  const Label a = labelled({"classification=green"});
  EXPECT_EQ(join(a, a, order()), a);
  EXPECT_THAT(
      message_of<PolicyError>([&] { (void)join(a, labelled({"classification=public"}), order()); }),
      HasSubstr("'green' is not among the classifications"));
}

TEST(Label, ComesBackFromJson) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"classification=public"},
        {"classification=a b", "jurisdiction=AE", "owner=z,a", "retention=2030-12-31"}}) {
    const Label label = labelled(words);
    const nlohmann::json manifest = {{"label", nlohmann::json(to_json(label))}};
    EXPECT_EQ(label_of(manifest), label);
  }
  EXPECT_FALSE(label_of(nlohmann::json::object()));
}

TEST(Label, RefusesDamagedJson) {
  const auto refusal = [](const char* text) {
    return message_of<DataError>([&] { (void)label_of({{"label", nlohmann::json::parse(text)}}); });
  };
  EXPECT_THAT(refusal(R"("secret")"), HasSubstr("label"));
  EXPECT_THAT(refusal(R"({"owners": ["a"]})"), HasSubstr("classification"));
  EXPECT_THAT(refusal(R"({"classification": ""})"), HasSubstr("needs a classification"));
  EXPECT_THAT(refusal(R"({"classification": "a", "owners": ["b", "a"]})"), HasSubstr("sorted"));
  EXPECT_THAT(refusal(R"({"classification": "a", "owners": [1]})"), HasSubstr("list of texts"));
  EXPECT_THAT(refusal(R"({"classification": "a", "retention": "x"})"), HasSubstr("not a day"));
  EXPECT_THAT(refusal(R"({"classification": "a", "releasable_to": ["b"]})"),
              HasSubstr("unknown field 'releasable_to'"));
}

}  // namespace
}  // namespace trireme
