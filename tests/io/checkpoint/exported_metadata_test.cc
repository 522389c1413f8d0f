#include "io/checkpoint/exported_metadata.h"

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

TEST(ExportedMetadata, CarriesTheLabel) {
  StepFolder step;
  step.manifest.emplace();
  step.manifest_sha256 = std::string(64, 'a');
  EXPECT_EQ(exported_label(exported_metadata(step)), kUnlabelled);
  step.manifest->meta.label = parse_label({"classification=secret", "jurisdiction=AE"});
  const std::map<std::string, std::string> metadata = exported_metadata(step);
  EXPECT_EQ(metadata.at("format"), "pt") << "transformers reads no other file";
  EXPECT_EQ(metadata.at("trireme_manifest_sha256"), step.manifest_sha256);
  EXPECT_EQ(exported_label(metadata), step.manifest->meta.label);
  EXPECT_EQ(exported_facts(step).at("label"), metadata.at("trireme_label"));
}

TEST(ExportedMetadata, ADamagedLabelIsNoMissingOne) {
  for (const char* const label : {"", "{}", "secret", R"({"classification": "a", "other": 1})"}) {
    EXPECT_THROW((void)exported_label({{"trireme_label", label}}), DataError) << label;
  }
}

}  // namespace
}  // namespace trireme
