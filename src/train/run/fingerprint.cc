#include "src/train/run/fingerprint.h"

#include <charconv>
#include <map>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "mpi/nccl/nccl_world.h"
#include "src/base/json_fields.h"
#include "src/base/json_number.h"
#include "src/kernels/instructions.h"
#include "src/kernels/product_library.h"
#include "src/train/run/model_fingerprint.h"

namespace trireme {
namespace {

// The fields that older versions did not write, with the values with which those versions trained.
nlohmann::json later_fields() {
  return {{"train.label_smoothing", 0.0},   {"train.z_loss", 0.0},
          {"model.attention_dropout", 0.0}, {"model.qkv_bias", false},
          {"model.alibi", false},           {"model.swiglu", false},
          {"model.embedding_scale", 1.0},   {"model.logit_scale", 1.0},
          {"model.attention_scale", 0.0},   {"optimizer.momentum", OptimizerConfig().momentum},
          {"optimizer.nesterov", false},    {"optimizer.ema", 0.0},
          {"optimizer.keep_zeros", false},  {"train.batch_ramp.from", 0},
          {"train.batch_ramp.by", 0},       {"train.batch_ramp.every", 0},
          {"train.products", "precision"},  {"data.mixture", ""},
          {"data.documents", "joined"},     {"distill.teacher", ""}};
}

// Throws DataError if the field is not a string.
std::string text_or(const nlohmann::json& fields, const char* name, const std::string& otherwise) {
  return fields.contains(name) ? text_field(fields, name) : otherwise;
}

}  // namespace

nlohmann::json with_later_fields(const nlohmann::json& fingerprint) {
  nlohmann::json complete = later_fields();
  complete.update(fingerprint);
  return complete;
}

bool has_average(const nlohmann::json& checkpoint) {
  return checkpoint.contains("optimizer.ema") && finite_field(checkpoint, "optimizer.ema") != 0;
}

void check_same_states(const nlohmann::json& checkpoint, const RunConfig& run) {
  const OptimizerConfig& own = run.optimizer;
  const std::string saved = text_or(checkpoint, "optimizer.name", own.name);
  if (saved != own.name) {
    throw ConfigError(fmt::format(
        "the checkpoint holds the state of the optimizer {}, but optimizer.name is {}: neither can "
        "continue from the other's state; set optimizer.name to {}, or start a new run",
        saved, own.name, saved));
  }
  const bool averaged = has_average(checkpoint);
  if (own.ema > 0 && !averaged) {
    throw ConfigError(fmt::format(
        "optimizer.ema is {}, but the checkpoint holds no moving average of the weights, which can "
        "only begin with its run: set optimizer.ema to 0, or start a new run",
        own.ema));
  }
}

nlohmann::json config_fingerprint(const RunConfig& c, const std::string& dataset_digest,
                                  const std::string& tokenizer) {
  const OptimizerConfig& o = c.optimizer;
  nlohmann::json fields = model_fingerprint(c.model);
  put_fine_tuning(c.model, fields);
  fields["data.digest"] = dataset_digest;
  fields["data.tokenizer"] = tokenizer;
  fields["data.mixture"] = mixture_text(c.data.train);
  fields["data.sequence"] = c.data.sequence;
  fields["data.shuffle"] = c.data.shuffle;
  fields["data.documents"] = c.data.documents;
  fields["data.seed"] = c.data.seed;
  fields["distill.teacher"] = c.distill.manifest_sha256;
  if (c.distill.is_on()) {
    fields["distill.weight"] = c.distill.weight;
    fields["distill.temperature"] = c.distill.temperature;
  }
  fields["train.global_batch"] = c.train.global_batch;
  fields["train.batch_ramp.from"] = c.train.batch_ramp.from;
  fields["train.batch_ramp.by"] = c.train.batch_ramp.by;
  fields["train.batch_ramp.every"] = c.train.batch_ramp.every;
  fields["train.micro_batch"] = c.train.micro_batch;
  fields["train.precision"] = c.train.precision;
  fields["train.products"] = c.train.products;
  if (c.train.uses_fp8()) {
    fields["train.fp8.scaling"] = c.train.fp8_scaling;
    fields["train.fp8.history"] = c.train.fp8_history;
  }
  if (c.train.scales_loss()) {
    fields["train.loss_scale.initial"] = c.train.loss_scale.initial;
    fields["train.loss_scale.growth_interval"] = c.train.loss_scale.growth_interval;
    fields["train.loss_scale.minimum"] = c.train.loss_scale.minimum;
    fields["train.loss_scale.maximum"] = c.train.loss_scale.maximum;
  }
  fields["train.seed"] = c.train.seed;
  fields["train.label_smoothing"] = c.train.label_smoothing;
  fields["train.z_loss"] = c.train.z_loss;
  fields["optimizer.name"] = o.name;
  fields["optimizer.lr"] = o.lr;
  fields["optimizer.betas"] = o.betas;
  fields["optimizer.eps"] = o.eps;
  fields["optimizer.weight_decay"] = o.weight_decay;
  fields["optimizer.momentum"] = o.momentum;
  fields["optimizer.nesterov"] = o.nesterov;
  fields["optimizer.ema"] = o.ema;
  fields["optimizer.keep_zeros"] = o.keep_zeros;
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
  // Fields that learning_rate() does not use, by kind of schedule.
  static const std::map<std::string, std::vector<const char*>> unused = {
      {"constant", {"steps", "min_lr", "decay"}},
      {"inverse_sqrt", {"steps", "decay"}},
      {"linear", {"decay"}},
      {"cosine", {"decay"}}};
  const char* const kind = "optimizer.schedule.kind";
  std::vector<std::string> fields;
  if (!checkpoint.contains("data.tokenizer")) {
    fields.emplace_back("data.tokenizer");
  }
  const char* const fp8 = "train.fp8.scaling";
  if (checkpoint.contains(fp8) != run.contains(fp8)) {
    fields.emplace_back("train.fp8");
  }
  // A run without loss scaling has no such fields.
  const char* const scale = "train.loss_scale.initial";
  if (checkpoint.contains(scale) != run.contains(scale)) {
    fields.emplace_back("train.loss_scale");
  }
  const auto found = unused.find(text_or(checkpoint, kind, ""));
  if (found != unused.end() && text_or(run, kind, "") == found->first) {
    for (const char* const name : found->second) {
      fields.push_back(std::string("optimizer.schedule.") + name);
    }
  }
  return fields;
}

DType trained_precision(const nlohmann::json& checkpoint) {
  if (!checkpoint.contains("train.precision")) {
    return DType::bf16;
  }
  const std::string& word = text_field(checkpoint, "train.precision");
  const std::optional<DType> trained = dtype_of_precision(word);
  if (!trained) {
    throw DataError(
        fmt::format("field 'train.precision' is '{}', not {}", word, fmt::join(kPrecisions, ", ")));
  }
  return *trained;
}

bool separates_documents(const nlohmann::json& checkpoint) {
  const std::string documents = text_or(checkpoint, "data.documents", "joined");
  if (documents != "joined" && documents != "separate") {
    throw DataError(
        fmt::format("field 'data.documents' is '{}', not joined or separate", documents));
  }
  return documents == "separate";
}

namespace {

constexpr const char* kAlgorithms = "algorithms";  // of the products on a CUDA device

// Returns the products of a numerics fingerprint with their algorithms.
nlohmann::json algorithms_of(const nlohmann::json& numerics) {
  const bool has_some = numerics.contains(kAlgorithms) && numerics.at(kAlgorithms).is_object();
  return has_some ? numerics.at(kAlgorithms) : nlohmann::json::object();
}

}  // namespace

std::vector<std::string> algorithms_of_one_run(const nlohmann::json& checkpoint,
                                               const nlohmann::json& run) {
  const nlohmann::json saved = algorithms_of(checkpoint);
  const nlohmann::json own = algorithms_of(run);
  std::vector<std::string> fields;
  const auto add_missing = [&](const nlohmann::json& from, const nlohmann::json& in) {
    for (const auto& [product, algorithm] : from.items()) {
      if (!in.contains(product)) {
        fields.push_back(fmt::format("{}.{}", kAlgorithms, product));
      }
    }
  };
  add_missing(saved, own);
  add_missing(own, saved);
  return fields;
}

std::vector<std::string> fields_not_recorded(const nlohmann::json& checkpoint_numerics) {
  std::vector<std::string> fields;
  if (!checkpoint_numerics.contains("instructions")) {
    fields.emplace_back("instructions");
  }
  if (text_or(checkpoint_numerics, "kernels", "") == "cuda" &&
      !checkpoint_numerics.contains(kAlgorithms)) {
    fields.emplace_back(kAlgorithms);
  }
  return fields;
}

std::string configuration_key(const std::string& field) {
  static const std::map<std::string, std::string> renamed = {
      {"model.rope_factor", "model.rope_scaling.factor"},
      {"model.rope_low_frequency", "model.rope_scaling.low_frequency"},
      {"model.rope_high_frequency", "model.rope_scaling.high_frequency"},
      {"model.rope_original_context", "model.rope_scaling.original_context"}};
  const auto found = renamed.find(field);
  return found == renamed.end() ? field : found->second;
}

nlohmann::json by_configuration_keys(const nlohmann::json& fields) {
  nlohmann::json renamed = nlohmann::json::object();
  for (const auto& [name, value] : fields.items()) {
    renamed[configuration_key(name)] = value;
  }
  return renamed;
}

nlohmann::json readable_numbers(nlohmann::json fields) {
  if (fields.is_structured()) {
    for (auto& field : fields) {
      field = readable_numbers(std::move(field));
    }
  } else if (fields.is_number_float()) {
    const auto value = fields.get<double>();
    const auto narrow = static_cast<float>(value);
    if (static_cast<double>(narrow) == value) {
      const std::string text = fmt::format("{}", narrow);
      double shortest = value;
      std::from_chars(text.data(), text.data() + text.size(), shortest);
      fields = shortest;
    }
  }
  return fields;
}

nlohmann::json numerics_fingerprint(const RunConfig& c, std::string_view kernels, int dp, int tp,
                                    bool sequence_parallel) {
  nlohmann::json fields = {{"reproducibility", c.reproducibility},
                           {"kernels", kernels},
                           {"instructions", instructions_of(kernels)},
                           {"products", products_of(kernels)},
                           {"tp", tp},
                           {"sequence_parallel", sequence_parallel}};
  if (c.train.attends_by_cudnn()) {
    fields["attention"] = c.train.attention;
  }
  if (c.reproducibility != "elastic") {
    fields["dp"] = dp;
    if (kernels == "cuda") {  // whose groups add in the order that NCCL chooses
      fields["nccl"] = nccl_version();
    }
  }
  return fields;
}

}  // namespace trireme
