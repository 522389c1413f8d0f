// RegistryFolder is the fixture of the tests of the registry: a registry in a folder of its own,
// and models of a few bytes.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "src/registry/model_files.h"
#include "src/registry/model_registry.h"
#include "tests/support/temp_folder.h"

namespace trireme {

class RegistryFolder : public testing::Test {
 protected:
  std::filesystem::path root() const { return folder_.path() / "registry"; }
  ModelRegistry registry() const { return ModelRegistry::open_or_make(root()); }

  // Makes the files of a new exported model, and the record of a version of it.
  VersionRecord a_version(const std::string& model) {
    const auto path = folder_.path() / ("model-" + std::to_string(++models_));
    std::filesystem::create_directory(path);
    std::ofstream(path / "config.json") << "{}";
    std::ofstream(path / "model.safetensors") << "weights " << models_;
    std::vector<std::string> skipped;
    VersionRecord record = describe_model(path, skipped);
    record.model = model;
    record.note = "note";
    record.origin = {"2026-01-02T03:04:05Z", "sara", "n1"};
    return record;
  }
  VersionRecord added(const std::string& model, EvaluationResult result = {}) {
    VersionRecord record = a_version(model);
    record.result = std::move(result);
    return registry().add(record);
  }
  ChangeRecord promote(const std::string& model, std::int64_t version, const std::string& stage) {
    ChangeRecord change = change_of(model, stage);
    change.version = version;
    return registry().promote(change);
  }
  ChangeRecord roll_back(const std::string& model, const std::string& stage) {
    return registry().roll_back(change_of(model, stage));
  }

  TempFolder folder_;

 private:
  static ChangeRecord change_of(const std::string& model, const std::string& stage) {
    ChangeRecord change;
    change.model = model;
    change.stage = stage;
    change.origin = {"2026-01-02T03:04:05Z", "sara", "n1"};
    return change;
  }

  int models_ = 0;
};

}  // namespace trireme
