// A trained model out of a checkpoint, ready to evaluate or generate; no optimizer, no MPI.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "src/nn/model.h"
#include "src/nn/parameter.h"

namespace trireme {

struct LoadedModel {
  ModelConfig config;
  std::unique_ptr<ParameterStore> parameters;  // before the model, which refers to it
  std::unique_ptr<Model> model;
  std::int64_t step = 0;
  std::int64_t sequence = 0;         // tokens a sample it was trained on
  std::string tokenizer;             // its name
  std::vector<std::string> skipped;  // newer steps that were not whole, and why
};

// directory: a step's folder, or a checkpoint folder, which means its newest valid step. NotFound
// if there is none, DataError if none is valid.
LoadedModel load_model(const std::filesystem::path& directory, Pool& pool, DType compute);

}  // namespace trireme
