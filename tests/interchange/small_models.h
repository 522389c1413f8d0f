// The golden models of make_golden.py and make_jais_golden.py, and files for tests that damage
// them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/checkpoint/store.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"

namespace trireme {

inline const std::vector<std::string> kGoldenModels = {
    "gpt2", "gpt2_untied", "jais", "jais_untied", "llama2", "llama3", "mistral", "qwen2"};

inline std::filesystem::path golden_model(const std::string& name) {
  return std::filesystem::path(TRIREME_SOURCE_DIR "/tests/interchange/golden") / name;
}

// What transformers computed from a golden model.
struct ExpectedResults {
  std::vector<std::int32_t> ids;  // the prompt
  std::vector<double> logits;     // [ids, vocab]
  std::vector<std::int32_t> continuation;
};

inline ExpectedResults expected_results(const std::string& name) {
  const nlohmann::json json = parse_json(read_file(golden_model(name) / "expected.json"));
  ExpectedResults results{json.at("ids"), {}, json.at("continuation")};
  for (const auto& row : json.at("logits")) {
    results.logits.insert(results.logits.end(), row.begin(), row.end());
  }
  return results;
}

// Copies a golden model to a folder, which is made.
inline void copy_golden(const std::string& name, const std::filesystem::path& to) {
  std::filesystem::copy(golden_model(name), to, std::filesystem::copy_options::recursive);
}

// Returns the newest step in a folder of checkpoints, or the step that the folder is.
inline StepFolder step_in(const std::filesystem::path& folder) {
  std::vector<std::string> none;
  return find_step(folder, none);
}

// Sets fields of config.json in a folder; null removes a field.
inline void edit_config(const std::filesystem::path& folder, const nlohmann::json& changes) {
  nlohmann::json config = parse_json(read_file(folder / "config.json"));
  config.merge_patch(changes);
  write_file_durably(folder / "config.json", config.dump());
}

}  // namespace trireme
