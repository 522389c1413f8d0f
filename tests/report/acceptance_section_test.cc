#include "src/report/acceptance_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

// As src/app/study/accept_command.cc writes it.
Json acceptance() {
  const Json good = {{"nodes", {"n1"}},
                     {"good", true},
                     {"findings", Json::array()},
                     {"complaints", Json::array()},
                     {"sentence", nullptr}};
  const Json bad = {{"nodes", {"<n3>"}},
                    {"good", false},
                    {"findings",
                     {{{"name", "gemm time_us"},
                       {"value", 20890},
                       {"typical", 6631},
                       {"unit", "us"},
                       {"percent", 32},
                       {"score", 8},
                       {"limit", nullptr}}}},
                    {"complaints", {"clock: not synchronised"}},
                    {"sentence", "Node <n3> is slow."}};
  Json link = good;
  link["nodes"] = {"n1", "n2"};
  return {{"schema", 1},
          {"accepted", false},
          {"seconds", 56},
          {"rounds", 3},
          {"nodes", {good, bad}},
          {"links", {link}},
          {"partner_tests", Json::array()},
          {"nodes_with_bad_links", Json::array()},
          {"drain_commands", {"scontrol update NodeName=n3"}}};
}

TEST(AcceptanceSection, ShowsVerdictsWithTheBadOnesFirst) {
  EXPECT_TRUE(looks_like_acceptance(acceptance().dump()));
  EXPECT_FALSE(looks_like_acceptance("{\"schema\": 2, \"command\": \"coll\"}"));
  const DocSection section = acceptance_section(acceptance().dump(), "acceptance.json");
  ASSERT_EQ(section.tables.size(), 2U);
  EXPECT_EQ(section.tables[0].rows[0][0], "<n3>");
  EXPECT_EQ(section.tables[1].rows[0][0], "n1 - n2");
  const std::string page = to_html({"t", {}, {section}});
  for (const char* const words :
       {"The machine is REJECTED. 2 nodes and 1 link were measured",
        "For the vendor: Node &lt;n3&gt;",
        "gemm time_us: 20890 us (32 % of the typical 6631); clock: not synchronised",
        "scontrol update NodeName=n3"}) {
    EXPECT_THAT(page, HasSubstr(words)) << words;
  }
}

TEST(AcceptanceSection, SaysThatTheBadNodesAreTooMany) {
  Json document = acceptance();
  EXPECT_TRUE(acceptance_section(document.dump(), "a").remarks.empty()) << "of an older program";
  document["drain"] = {{"asked", false}, {"done", false}, {"shared_cause", nullptr}};
  EXPECT_TRUE(acceptance_section(document.dump(), "a").remarks.empty());
  document["drain"]["shared_cause"] = "3 of 4 nodes would be drained";
  EXPECT_THAT(acceptance_section(document.dump(), "a").remarks,
              testing::ElementsAre("3 of 4 nodes would be drained"));
  document["drain"] = 7;
  EXPECT_THROW(acceptance_section(document.dump(), "a"), DataError);
}

TEST(AcceptanceSection, SaysWhatIsWrongWithAFile) {
  EXPECT_THROW(acceptance_section("{\"schema\": 1, \"acc", "a"), DataError);
  for (const auto& [key, value] : std::map<std::string, Json>{
           {"schema", 7}, {"accepted", "yes"}, {"nodes", {1, 2}}, {"links", {{{"good", true}}}}}) {
    Json odd = acceptance();
    odd[key] = value;
    EXPECT_THROW(acceptance_section(odd.dump(), "a"), DataError) << key;
  }
  Json odd = acceptance();
  odd["nodes"][0]["nodes"] = {5};
  EXPECT_THROW(acceptance_section(odd.dump(), "a"), DataError);
}

}  // namespace
}  // namespace trireme
