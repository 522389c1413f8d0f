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

TEST(AcceptanceSection, ShowsWhatWasMeasuredAndDemanded) {
  Json document = acceptance();
  const Json figure = {{"name", "gemm flops_per_s"},
                       {"details", "m=512 precision=fp32"},
                       {"value", 5e8},
                       {"typical", 6e8},
                       {"unit", "FLOP/s"},
                       {"percent", 83.3},
                       {"score", nullptr},
                       {"limit", true},
                       {"agreed", {{"name", "flops_per_s"}, {"value", 1e9}, {"at_least", true}}}};
  document["nodes"][0]["figures"] = {figure};
  document["nodes"][0]["findings"] = {figure};
  document["nodes"][0]["notes"] = {"gemm waited"};
  const Json demands = {
      {"measures", {"gemm"}}, {"at_least", 90}, {"score", 3}, {"limits", {{"flops_per_s", 1e9}}}};
  document["time"] = 1795880716;
  document["profile"] = {
      {"file", "p.yaml"}, {"sha256", "0123abcd"}, {"node", demands}, {"link", demands}};
  const std::string page = to_markdown({"t", {}, {acceptance_section(document.dump(), "a")}});
  for (const char* const words :
       {"gemm flops\\_per\\_s m=512 precision=fp32 | 500000000 | "
        "600000000 | FLOP/s | 83.3 | at least "
        "1000000000, MISSED",
        "(83.3 % of the typical 600000000; agreed: at least 1000000000, MISSED)",
        "note: gemm waited", "2026-11-2", "p.yaml", "0123abcd",
        "Demanded of each node: 90 % of the typical speed"}) {
    EXPECT_THAT(page, HasSubstr(words)) << words;
  }
  for (const char* const key : {"value", "name", "details", "unit"}) {
    Json odd = document;
    odd["nodes"][0]["figures"][0].erase(key);
    EXPECT_THROW(acceptance_section(odd.dump(), "a"), DataError) << key;
  }
  document["profile"]["node"] = 5;
  EXPECT_THROW(acceptance_section(document.dump(), "a"), DataError);
}

TEST(AcceptanceSection, SaysThatAMachineIsNotJudged) {
  Json document = acceptance();
  document["verdict"] = "not judged";
  document["doubt"] = "2 nodes not judged";
  document["nodes"][0]["good"] = false;
  document["nodes"][0]["judged"] = false;
  const DocSection section = acceptance_section(document.dump(), "a");
  EXPECT_THAT(section.paragraphs[0], HasSubstr("The machine is NOT JUDGED."));
  EXPECT_THAT(section.remarks, testing::ElementsAre("2 nodes not judged"));
  EXPECT_EQ(section.tables[0].rows[0][1], "not judged");
}

TEST(AcceptanceSection, AFileThatSaysTwoThingsIsRefused) {
  Json document = acceptance();
  document["accepted"] = true;
  EXPECT_THROW(acceptance_section(document.dump(), "a"), DataError);
  document["nodes"][1]["good"] = true;
  EXPECT_NO_THROW(acceptance_section(document.dump(), "a"));
  document["verdict"] = "rejected";
  EXPECT_THROW(acceptance_section(document.dump(), "a"), DataError);
  document = acceptance();
  document["nodes"] = document["links"] = Json::array();
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
  odd = acceptance();
  odd["program"] = {{"version", "0.1.0"}, {"commit", 5}};
  EXPECT_THROW(acceptance_section(odd.dump(), "a"), DataError);
}

}  // namespace
}  // namespace trireme
