#include "src/train/load_model.h"

#include <nlohmann/json.hpp>

#include "io/checkpoint/reader.h"
#include "io/checkpoint/store.h"
#include "src/train/engine/training_state.h"
#include "src/train/run/fingerprint.h"

namespace trireme {

LoadedModel load_model(const std::filesystem::path& directory, Pool& pool, DType compute) {
  std::vector<std::string> skipped;
  const StepFolder step = find_step(directory, skipped);
  const CheckpointReader reader(step.path, *step.manifest);
  const CheckpointMeta& meta = reader.manifest().meta;

  LoadedModel loaded;
  loaded.config = model_from_fingerprint(*meta.config);
  loaded.step = meta.step;
  loaded.sequence = meta.config->value("data.sequence", loaded.config.context);
  loaded.tokenizer = meta.extra->value("tokenizer", std::string("bytes"));
  loaded.skipped = skipped;
  loaded.parameters = std::make_unique<ParameterStore>(pool, compute);
  loaded.model = std::make_unique<Model>(loaded.config, *loaded.parameters);
  loaded.parameters->allocate();
  MasterWeights masters(*loaded.parameters);
  reader.load(parameters_to_load(masters));
  masters.refresh_computes();
  return loaded;
}

}  // namespace trireme
