// Tests bills of materials and their two formats. tests/e2e/sbom_test.py checks the program's own.
#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/app/command/standard_output.h"
#include "src/app/command/version.h"
#include "src/app/sbom/formats.h"
#include "src/app/sbom/loaded_files.h"
#include "src/base/error.h"
#include "tests/app/command_run.h"
#include "tests/support/environment_variables.h"

namespace trireme {
namespace {

using nlohmann::ordered_json;
using testing::MatchesRegex;

BillOfMaterials example() {
  const DebianPackage libc{.name = "libc6",
                           .version = "2.36-9",
                           .architecture = "amd64",
                           .source = "glibc",
                           .source_version = "2.36-8",
                           .copyright = "/usr/share/doc/libc6/copyright"};
  return {.name = "trireme",
          .version = "1.2.3",
          .commit = "abc",
          .path = "/opt/trireme",
          .sha256 = std::string(64, 'a'),
          .objects = {{"/usr/lib/libc.so.6", "libc.so.6", std::string(64, 'b'), libc},
                      {"/usr/lib/libm.so.6", "libm.so.6", std::string(64, 'c'), libc},
                      {"/x/plug_in+1.so", "", std::string(64, 'd'), std::nullopt}},
          .created = "2025-01-31T12:00:00Z"};
}

// Paths and names as somebody could choose them who may write to a folder of LD_LIBRARY_PATH.
BillOfMaterials hostile() {
  BillOfMaterials bill = example();
  bill.path = "/\"},\"evil\":{\"";
  bill.objects[0].path = "/a\nb\x1b[2J\\\"";
  bill.objects[0].soname = "\"\\\n\x01<&>'../..";
  bill.objects[1].path = "/\xff";
  bill.objects[1].soname = "\xff";
  bill.objects[2].path = "/\xfe";
  bill.objects[2].soname = "\xfe";
  return bill;
}

ordered_json property(const ordered_json& component, const std::string& name) {
  for (const ordered_json& each : component["properties"]) {
    if (each["name"] == "trireme:" + name) {
      return each["value"];
    }
  }
  return nullptr;
}

TEST(CycloneDx, HasThePartsOfTheBill) {
  const ordered_json document = cyclonedx_json(example());
  EXPECT_EQ(document["bomFormat"], "CycloneDX");
  EXPECT_EQ(document["specVersion"], "1.5");
  EXPECT_EQ(document["metadata"]["timestamp"], "2025-01-31T12:00:00Z");
  EXPECT_EQ(document["metadata"]["component"]["version"], "1.2.3");
  EXPECT_EQ(property(document["metadata"]["component"], "commit"), "abc");
  const ordered_json& libc = document["components"][0];
  EXPECT_EQ(libc["name"], "libc.so.6");
  EXPECT_EQ(libc["version"], "2.36-9");
  EXPECT_EQ(libc["purl"], "pkg:deb/debian/libc6@2.36-9?arch=amd64");
  EXPECT_EQ(libc["hashes"][0]["content"], std::string(64, 'b'));
  EXPECT_EQ(property(libc, "path"), "/usr/lib/libc.so.6");
  EXPECT_EQ(property(libc, "debian:source"), "glibc");
  EXPECT_EQ(property(libc, "debian:source-version"), "2.36-8");
  EXPECT_EQ(property(libc, "debian:copyright"), "/usr/share/doc/libc6/copyright");
  const ordered_json& other = document["components"][2];
  EXPECT_EQ(other["name"], "plug_in+1.so");
  EXPECT_FALSE(other.contains("version") || other.contains("purl"));
  EXPECT_EQ(property(other, "soname"), nullptr);
}

TEST(Spdx, HasThePartsOfTheBill) {
  const ordered_json document = spdx_json(example());
  EXPECT_EQ(document["spdxVersion"], "SPDX-2.3");
  EXPECT_EQ(document["dataLicense"], "CC0-1.0");
  EXPECT_EQ(document["creationInfo"]["created"], "2025-01-31T12:00:00Z");
  EXPECT_EQ(document["packages"].size(), 4U);
  EXPECT_EQ(document["packages"][0]["sourceInfo"], "commit abc");
  const ordered_json& libc = document["packages"][1];
  EXPECT_EQ(libc["externalRefs"][0]["referenceLocator"], "pkg:deb/debian/libc6@2.36-9?arch=amd64");
  EXPECT_EQ(libc["sourceInfo"],
            "SONAME libc.so.6; Debian package libc6 2.36-9 amd64; source package glibc 2.36-8; "
            "copyright file /usr/share/doc/libc6/copyright");
  const ordered_json& other = document["packages"][3];
  EXPECT_EQ(other["sourceInfo"], "no SONAME");
  EXPECT_FALSE(other.contains("versionInfo") || other.contains("externalRefs"));
}

TEST(Sbom, IdentifiersAreUniqueAndPlain) {
  for (const BillOfMaterials& bill : {example(), hostile()}) {
    std::set<std::string> ids = {kProgramId};
    for (std::size_t i = 0; i < bill.objects.size(); ++i) {
      EXPECT_THAT(object_id(bill, i), MatchesRegex("[A-Za-z0-9.-]+"));
      EXPECT_TRUE(ids.insert(object_id(bill, i)).second);
    }
  }
  EXPECT_EQ(object_id(example(), 2), "Library-3-plug-in-1.so");
}

TEST(Sbom, HostileNamesStayTexts) {
  for (const auto format : {cyclonedx_json, spdx_json}) {
    const ordered_json document = ordered_json::parse(json_text(format(hostile())));
    const ordered_json& list = document[document.contains("packages") ? "packages" : "components"];
    const std::size_t first = document.contains("packages") ? 1 : 0;
    EXPECT_EQ(list[first]["name"], hostile().objects[0].soname);
    EXPECT_EQ(list[first + 1]["name"], "\xef\xbf\xbd");  // U+FFFD
    EXPECT_FALSE(document.contains("evil"));
  }
}

TEST(Sbom, TheIdentifierOfADocumentFollowsFromItsContents) {
  EXPECT_THAT(document_uuid(example()),
              MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  BillOfMaterials later = example();
  later.created = "2026-01-01T00:00:00Z";
  EXPECT_EQ(document_uuid(later), document_uuid(example()));
  BillOfMaterials elsewhere = example();
  elsewhere.path = "/srv/trireme";
  elsewhere.objects[0].path = "/z/libc.so.6";
  std::swap(elsewhere.objects[0], elsewhere.objects[2]);
  EXPECT_EQ(document_uuid(elsewhere), document_uuid(example()));
  std::set<std::string> all = {document_uuid(example())};
  for (const auto& change : std::vector<std::function<void(BillOfMaterials&)>>{
           [](auto& bill) { bill.sha256[5] = 'f'; },
           [](auto& bill) { bill.objects[1].sha256[5] = 'f'; },
           [](auto& bill) { bill.objects[0].package->version += "1"; },
           [](auto& bill) { bill.objects[0].package.reset(); },
           [](auto& bill) { bill.objects.pop_back(); },
           [](auto& bill) { bill.objects[0].soname += 'b', bill.objects[0].sha256.erase(0, 1); }}) {
    BillOfMaterials bill = example();
    change(bill);
    EXPECT_TRUE(all.insert(document_uuid(bill)).second);
  }
}

TEST(Sbom, TimeIsThatOfSourceDateEpoch) {
  EXPECT_EQ(creation_time("0"), "1970-01-01T00:00:00Z");
  EXPECT_EQ(creation_time("1700000000"), "2023-11-14T22:13:20Z");
  EXPECT_EQ(creation_time("253402300799"), "9999-12-31T23:59:59Z");
  EXPECT_THAT(creation_time(nullptr), MatchesRegex("20[0-9-]+T[0-9:]+Z"));
  for (const char* wrong : {"", " 1", "1 ", "-1", "+1", "1e9", "0x1", "253402300800",
                            "99999999999999999999", "yesterday"}) {
    EXPECT_THROW(creation_time(wrong), ConfigError) << wrong;
  }
}

TEST(Sbom, ThisProcessHasTheLibrariesThatItUses) {
  const std::vector<LoadedFile> files = loaded_files();
  EXPECT_TRUE(std::is_sorted(files.begin(), files.end(),
                             [](const auto& a, const auto& b) { return a.path < b.path; }));
  std::set<std::string> sonames;
  for (const LoadedFile& file : files) {
    EXPECT_TRUE(file.path.starts_with('/')) << file.path;
    sonames.insert(file.soname);
  }
  EXPECT_TRUE(sonames.contains("libc.so.6"));
  EXPECT_TRUE(sonames.contains("libstdc++.so.6"));
}

CommandRun version(const std::vector<std::string>& words) {
  return run_command_line(
      [](CommandLine& app, int& exit_code) { add_version_flags(app, exit_code); }, words);
}

TEST(Sbom, IsPrintedWithTheVersion) {
  EnvironmentVariables variables;
  variables.set("SOURCE_DATE_EPOCH", "1");
  for (const char* format : {"cyclonedx", "spdx"}) {
    const CommandRun run = version({"--version", "--sbom", format});
    EXPECT_EQ(run.code, 0);
    EXPECT_TRUE(ordered_json::parse(run.out).is_object());
    EXPECT_EQ(version({"--sbom", format, "--version"}).out, run.out);
  }
  variables.set("SOURCE_DATE_EPOCH", "now");
  EXPECT_EQ(version({"--version", "--sbom", "spdx"}).code, 2);
  EXPECT_EQ(version({"--version", "--sbom", "swid"}).code, 2);
  EXPECT_EQ(version({"--version", "--sbom"}).code, 2);
  EXPECT_EQ(version({"--sbom", "spdx"}).code, 2);
}

}  // namespace
}  // namespace trireme
