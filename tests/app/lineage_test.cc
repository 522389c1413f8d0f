#include "src/app/lineage.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/digest.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Each step of the chain was resumed from the one before, and its bundle has only its own line.
TEST(Lineage, FollowsALimitedNumberOfParents) {
  constexpr int kSteps = 1030;
  const TempFolder folder;
  const SigningKey key = SigningKey::generate();
  const auto step = [&](int number) { return folder.path() / fmt::format("step-{:08}", number); };
  for (int i = 1; i <= kSteps; ++i) {
    fs::create_directory(step(i));
    const std::string manifest = std::to_string(i);
    std::ofstream(step(i) / kManifestSubject) << manifest;
    Provenance provenance;
    provenance.subjects = {{kManifestSubject, sha256_hex(manifest)}};
    (*provenance.details)["step"] = i;
    (*provenance.details)["lineage"] = kLineageUnreadable;
    provenance.builder = "urn:test";
    if (i > 1) {
      const fs::path parent = step(i - 1) / kManifestSubject;
      provenance.materials = {
          {"parent", file_uri(parent.string()), sha256_hex(std::to_string(i - 1))}};
    }
    std::ofstream(step(i) / kProvenanceName)
        << to_text(make_envelope(std::string(kStatementType), statement_text(provenance), &key));
  }
  const Lineage lineage = walk_lineage(step(kSteps), {{{key.public_key(), "ours"}}, 1, {}});
  EXPECT_EQ(lineage.files, 1025);
  EXPECT_EQ(lineage.code(), ExitCode::not_found);
  EXPECT_THAT(lineage.items.back().place, HasSubstr("step-00000005"));
  const auto is_limit = [](const EvidenceFault& fault) {
    return fault.what.find("more than 1024 generations") != std::string::npos;
  };
  EXPECT_EQ(std::count_if(lineage.faults.begin(), lineage.faults.end(), is_limit), 1);
}

}  // namespace
}  // namespace trireme
