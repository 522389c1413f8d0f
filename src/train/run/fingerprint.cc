#include "src/train/run/fingerprint.h"

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/kernels/instructions.h"
#include "src/kernels/product_library.h"

namespace trireme {
namespace {

nlohmann::json model_fields(const ModelConfig& m) {
  return {{"family", family_name(m.family)},
          {"layers", m.layers},
          {"hidden", m.hidden},
          {"heads", m.heads},
          {"kv_heads", m.kv_heads},
          {"head_dim", m.head_dim},
          {"ffn", m.ffn},
          {"vocab", m.vocab},
          {"context", m.context},
          {"tie_embeddings", m.tie_embeddings},
          {"norm_epsilon", m.norm_epsilon},
          {"rope_theta", m.rope_theta},
          {"rope_factor", m.rope_scaling.factor},
          {"rope_low_frequency", m.rope_scaling.low_freq_factor},
          {"rope_high_frequency", m.rope_scaling.high_freq_factor},
          {"rope_original_context", m.rope_scaling.original_context},
          {"dropout", m.dropout},
          {"initializer_range", m.initializer_range}};
}

}  // namespace

nlohmann::json config_fingerprint(const RunConfig& c, const std::string& dataset_digest,
                                  const std::string& tokenizer) {
  const OptimizerConfig& o = c.optimizer;
  nlohmann::json fields;
  const nlohmann::json model = model_fields(c.model);
  for (const auto& [key, value] : model.items()) {
    fields["model." + key] = value;
  }
  fields["data.digest"] = dataset_digest;
  fields["data.tokenizer"] = tokenizer;
  fields["data.sequence"] = c.data.sequence;
  fields["data.shuffle"] = c.data.shuffle;
  fields["data.seed"] = c.data.seed;
  fields["train.global_batch"] = c.train.global_batch;
  fields["train.micro_batch"] = c.train.micro_batch;
  fields["train.precision"] = c.train.precision;
  fields["train.seed"] = c.train.seed;
  fields["optimizer.name"] = o.name;
  fields["optimizer.lr"] = o.lr;
  fields["optimizer.betas"] = o.betas;
  fields["optimizer.eps"] = o.eps;
  fields["optimizer.weight_decay"] = o.weight_decay;
  fields["optimizer.clip"] = o.clip;
  fields["optimizer.schedule.kind"] = schedule_name(o.schedule.kind);
  fields["optimizer.schedule.warmup"] = o.schedule.warmup;
  fields["optimizer.schedule.min_lr"] = o.schedule.min_lr;
  fields["optimizer.schedule.decay"] = o.schedule.decay;
  fields["optimizer.schedule.steps"] = o.schedule.steps;
  return fields;
}

std::vector<std::string> fields_without_effect(const nlohmann::json& checkpoint,
                                               const nlohmann::json& run) {
  const std::string kind = "optimizer.schedule.kind";
  std::vector<std::string> fields;
  if (!checkpoint.contains("data.tokenizer")) {
    fields.emplace_back("data.tokenizer");
  }
  if (checkpoint.value(kind, "") == "constant" && run.value(kind, "") == "constant") {
    for (const char* const unused : {"steps", "min_lr", "decay"}) {
      fields.push_back(std::string("optimizer.schedule.") + unused);
    }
  }
  return fields;
}

nlohmann::json numerics_fingerprint(const RunConfig& c, std::string_view kernels, int dp, int tp,
                                    bool sequence_parallel) {
  nlohmann::json fields = {{"reproducibility", c.reproducibility},
                           {"kernels", kernels},
                           {"instructions", instructions_of(kernels)},
                           {"products", product_library()},
                           {"tp", tp},
                           {"sequence_parallel", sequence_parallel}};
  if (c.reproducibility != "elastic") {
    fields["dp"] = dp;
  }
  return fields;
}

ModelConfig model_from_fingerprint(const nlohmann::json& fingerprint) {
  const auto field = [&](const char* key) -> const nlohmann::json& {
    const auto found = fingerprint.find(std::string("model.") + key);
    if (found == fingerprint.end()) {
      throw DataError(fmt::format(
          "the checkpoint says nothing of model.{}: it was not written by `trireme train`", key));
    }
    return *found;
  };
  try {
    ModelConfig m;
    m.family = parse_family(field("family").get<std::string>());
    m.layers = field("layers").get<std::int64_t>();
    m.hidden = field("hidden").get<std::int64_t>();
    m.heads = field("heads").get<std::int64_t>();
    m.kv_heads = field("kv_heads").get<std::int64_t>();
    m.head_dim = field("head_dim").get<std::int64_t>();
    m.ffn = field("ffn").get<std::int64_t>();
    m.vocab = field("vocab").get<std::int64_t>();
    m.context = field("context").get<std::int64_t>();
    m.tie_embeddings = field("tie_embeddings").get<bool>();
    m.norm_epsilon = field("norm_epsilon").get<double>();
    m.rope_theta = field("rope_theta").get<double>();
    m.rope_scaling.factor = field("rope_factor").get<double>();
    m.rope_scaling.low_freq_factor = field("rope_low_frequency").get<double>();
    m.rope_scaling.high_freq_factor = field("rope_high_frequency").get<double>();
    m.rope_scaling.original_context = field("rope_original_context").get<std::int64_t>();
    m.dropout = field("dropout").get<double>();
    m.initializer_range = field("initializer_range").get<double>();
    m.validate();
    return m;
  } catch (const nlohmann::json::exception& error) {
    throw DataError(
        fmt::format("the checkpoint's model configuration is damaged: {}", error.what()));
  }
}

}  // namespace trireme
