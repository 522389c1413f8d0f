#include "src/evidence/statement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const std::string kDigest(64, 'a');

Provenance sample() {
  Provenance provenance;
  provenance.subjects = {{"manifest.json", kDigest}, {"shards/00000.h5", std::string(64, 'b')}};
  provenance.materials = {{"data.train", "file:///data", kDigest}, {"parent", "memory:step-1", ""}};
  *provenance.parameters = {{"config", "model: {}\n"}};
  *provenance.details = {{"step", 7}};
  provenance.builder = "urn:trireme:host:n1";
  provenance.invocation = "n1/7";
  provenance.started = "2026-01-31T12:00:00Z";
  provenance.finished = "2026-01-31T12:30:00Z";
  return provenance;
}

TEST(Statement, HasTheFormOfInTotoAndSlsa) {
  const auto json = nlohmann::json::parse(statement_text(sample()));
  EXPECT_EQ(json["_type"], "https://in-toto.io/Statement/v1");
  EXPECT_EQ(json["predicateType"], "https://slsa.dev/provenance/v1");
  EXPECT_EQ(json["subject"][1]["digest"]["sha256"], std::string(64, 'b'));
  const auto& definition = json["predicate"]["buildDefinition"];
  EXPECT_EQ(definition["buildType"], "urn:trireme:train:1");
  EXPECT_EQ(definition["resolvedDependencies"][0]["uri"], "file:///data");
  EXPECT_FALSE(definition["resolvedDependencies"][1].contains("digest"));
  EXPECT_EQ(json["predicate"]["runDetails"]["metadata"]["startedOn"], "2026-01-31T12:00:00Z");
}

TEST(Statement, ReadsWhatItHasWritten) {
  const std::string text = statement_text(sample());
  const Provenance read = parse_statement(text);
  EXPECT_EQ(statement_text(read), text);
  EXPECT_EQ(read.find("parent")->uri, "memory:step-1");
  EXPECT_EQ(read.find("none"), nullptr);
  EXPECT_EQ(read.find_subject("manifest.json")->sha256, kDigest);
  EXPECT_EQ(read.find_subject("none"), nullptr);
}

TEST(Statement, IgnoresUnknownFields) {
  auto json = nlohmann::json::parse(statement_text(sample()));
  json["new"] = 1;
  json["subject"][0]["annotations"] = {{"x", 1}};
  json["predicate"]["runDetails"]["byproducts"] = nlohmann::json::array();
  EXPECT_EQ(statement_text(parse_statement(json.dump())), statement_text(sample()));
}

TEST(Statement, RefusesNamesThatLeadOutOfTheFolder) {
  for (const std::string name :
       {"", ".", "..", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "./a"}) {
    Provenance provenance = sample();
    provenance.subjects[0].name = name;
    EXPECT_THAT([&] { parse_statement(statement_text(provenance)); },
                ThrowsMessage<DataError>(HasSubstr("is not the name of a file in this folder")))
        << name;
  }
}

TEST(Statement, RefusesWhatIsNoStatement) {
  const std::string text = statement_text(sample());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    return other;
  };
  for (const std::string& other :
       {std::string(), std::string("[]"), std::string("{}"), text.substr(0, text.size() - 1),
        changed("Statement/v1", "Statement/v2"), changed("provenance/v1", "provenance/v0.2"),
        changed("sha256", "sha512"), changed(kDigest, std::string(64, 'A')),
        changed(kDigest, std::string(63, 'a')), changed("\"builder\"", "\"constructor\""),
        changed("\"subject\":[", "\"subject\":[],\"x\":[")}) {
    EXPECT_THROW(parse_statement(other), DataError) << other;
  }
}

TEST(FileUri, KeepsAnyPath) {
  for (const std::string path :
       {"/", "/a/b.json", "/with blank/100%", "/\xff\xc3\xa4\n", "/a?b#c"}) {
    EXPECT_EQ(path_of_uri(file_uri(path)), path);
  }
  EXPECT_EQ(file_uri("/a b"), "file:///a%20b");
  for (const char* const other : {"", "memory:step-1", "https://host/x", "file://%", "file:///%0",
                                  "file:///%00", "file:///%zz"}) {
    EXPECT_EQ(path_of_uri(other), "") << other;
  }
}

}  // namespace
}  // namespace trireme
