#include "src/plan/measured_step.h"

#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

// Limits beyond which a file is damaged: no model, machine or step is that large.
constexpr std::int64_t kMostWidth = 1 << 20;
constexpr std::int64_t kMostHeads = 1 << 12;
constexpr std::int64_t kMostSequence = 1 << 24;
constexpr std::int64_t kMostReadDegree = 1 << 20;
constexpr std::int64_t kMostReadStages = 256;
constexpr std::int64_t kMostChunks = 16;
constexpr std::int64_t kMostReadVirtualStages = 1024;  // whose schedule is simulated in a second
constexpr std::int64_t kMostReadMicroBatch = 1 << 12;  // sequences
constexpr double kLeastStepSeconds = 1e-6;
constexpr double kMostStepSeconds = 1e9;
constexpr double kMostResident = 0x1p50;

constexpr std::array kPrecisions = {"bf16", "fp8", "fp32"};

// Returns a number in [0, most].
double number_of(const nlohmann::json& object, const char* name, double most) {
  const nlohmann::json& value = field(object, name);
  const double number = value.is_number() ? value.get<double>() : std::nan("");
  if (!(number >= 0 && number <= most)) {
    throw DataError(fmt::format("'{}' is no number from 0 to {:g}", name, most));
  }
  return number;
}

Json fields_of(const PlanModel& m) {
  return {{"layers", m.layers},     {"hidden", m.hidden},     {"heads", m.heads},
          {"kv_heads", m.kv_heads}, {"head_dim", m.head_dim}, {"ffn", m.ffn},
          {"vocab", m.vocab},       {"sequence", m.sequence}, {"gated", m.gated},
          {"tied", m.tied},         {"dropout", m.dropout}};
}

PlanModel model_in(const nlohmann::json& json) {
  const auto size = [&](const char* name, std::int64_t most) {
    return count_field(json, name, 1, most);
  };
  PlanModel m;
  m.layers = size("layers", kMostWidth);
  m.hidden = size("hidden", kMostWidth);
  m.heads = size("heads", kMostHeads);
  m.kv_heads = size("kv_heads", kMostHeads);
  m.head_dim = size("head_dim", kMostHeads);
  m.ffn = size("ffn", kMostWidth);
  m.vocab = size("vocab", kMostWidth);
  m.sequence = size("sequence", kMostSequence);
  m.gated = flag_field(json, "gated");
  m.tied = flag_field(json, "tied");
  m.dropout = flag_field(json, "dropout");
  return m;
}

Json fields_of(const PlanLayout& l) {
  return {{"dp", l.dp},
          {"tp", l.tp},
          {"pp", l.pp},
          {"virtual_stages", l.virtual_stages},
          {"schedule", name_of(l.schedule)},
          {"micro_batch", l.micro_batch},
          {"micro_batches", l.micro_batches},
          {"zero", l.zero},
          {"recompute", name_of(l.recompute)},
          {"sequence_parallel", l.sequence_parallel}};
}

PlanRecompute recompute_in(const std::string& word) {
  for (const auto each : {PlanRecompute::none, PlanRecompute::selective, PlanRecompute::full}) {
    if (name_of(each) == word) {
      return each;
    }
  }
  throw DataError(fmt::format("'recompute' is none of none, selective, full: {}", word));
}

PlanLayout layout_in(const nlohmann::json& json) {
  const auto degree = [&](const char* name, std::int64_t most) {
    return count_field(json, name, 1, most);
  };
  PlanLayout l;
  l.dp = degree("dp", kMostReadDegree);
  l.tp = degree("tp", kMostReadDegree);
  l.pp = degree("pp", kMostReadStages);
  l.virtual_stages = degree("virtual_stages", kMostChunks);
  l.micro_batch = degree("micro_batch", kMostReadMicroBatch);
  l.micro_batches = degree("micro_batches", kMostReadDegree);
  l.zero = static_cast<int>(count_field(json, "zero", 0, 3));
  l.recompute = recompute_in(text_field(json, "recompute"));
  l.sequence_parallel = flag_field(json, "sequence_parallel");
  if (l.pp * l.virtual_stages > kMostReadVirtualStages) {
    throw DataError(fmt::format("'layout' has {} virtual stages, and at most {} are read",
                                l.pp * l.virtual_stages, kMostReadVirtualStages));
  }
  try {
    l.schedule = parse_pipeline_schedule(text_field(json, "schedule"));
    check_pipeline(l.schedule, {static_cast<int>(l.pp), static_cast<int>(l.virtual_stages),
                                l.micro_batches, false});
  } catch (const ConfigError& error) {
    throw DataError(fmt::format("'layout' is impossible: {}", error.what()));
  }
  return l;
}

PlanPrecision precision_named(const std::string& word) {
  for (std::size_t i = 0; i < kPrecisions.size(); ++i) {
    if (word == kPrecisions[i]) {
      return static_cast<PlanPrecision>(i);
    }
  }
  throw DataError(fmt::format("'precision' is none of bf16, fp8, fp32: {}", word));
}

// A layout that divides nothing would be predicted as nonsense.
void check_divides(const MeasuredStep& step) {
  const PlanModel& m = step.model;
  const PlanLayout& l = step.layout;
  if (m.heads % l.tp != 0 || l.pp * l.virtual_stages > 2 * m.layers) {
    throw DataError(
        "'layout' does not divide the model: tp has to divide the heads, and pp times "
        "virtual_stages is at most twice the layers");
  }
}

}  // namespace

std::array<double, StepSplit::kParts> StepSplit::parts() const {
  return {compute, tensor, pipeline, replicas, update, data, checkpoint};
}

StepSplit StepSplit::of(const std::array<double, kParts>& p) {
  return {p[0], p[1], p[2], p[3], p[4], p[5], p[6]};
}

const std::array<const char*, StepSplit::kParts>& StepSplit::names() {
  static constexpr std::array<const char*, kParts> kNames = {
      "compute", "tensor", "pipeline", "replicas", "update", "data", "checkpoint"};
  return kNames;
}

double StepSplit::total() const {
  const auto all = parts();
  return std::accumulate(all.begin(), all.end(), 0.0);
}

StepSplit split_of(const StepTime& t) {
  return {.compute = t.products + t.head + t.attention + t.kernels + t.recompute + t.accumulate,
          .tensor = t.tensor,
          .pipeline = t.transfer + t.bubble,
          .replicas = t.gradients + t.parameters,
          .update = t.optimizer,
          .data = 0,
          .checkpoint = t.checkpoint};
}

Json to_json(const StepSplit& split) {
  Json json = Json::object();
  const auto parts = split.parts();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    json[StepSplit::names()[i]] = parts[i];
  }
  return json;
}

StepSplit step_split(const nlohmann::json& json) {
  std::array<double, StepSplit::kParts> parts{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = number_of(json, StepSplit::names()[i], kMostStepSeconds);
  }
  return StepSplit::of(parts);
}

Json to_json(const MeasuredStep& step) {
  return {{"name", step.name},
          {"model", fields_of(step.model)},
          {"precision", kPrecisions.at(static_cast<std::size_t>(step.precision))},
          {"layout", fields_of(step.layout)},
          {"steps", step.steps},
          {"measured", to_json(step.measured)},
          {"memory_bytes", step.memory_bytes}};
}

MeasuredStep measured_step(const nlohmann::json& json) {
  MeasuredStep step;
  step.name = text_field(json, "name");
  step.model = model_in(object_field(json, "model"));
  step.precision = precision_named(text_field(json, "precision"));
  step.layout = layout_in(object_field(json, "layout"));
  step.steps = count_field(json, "steps", 1);
  step.measured = step_split(object_field(json, "measured"));
  step.memory_bytes = number_of(json, "memory_bytes", kMostResident);
  if (!(step.measured.predictable() >= kLeastStepSeconds)) {
    throw DataError(
        fmt::format("'measured': a step took less than {:g} s, as none does", kLeastStepSeconds));
  }
  check_divides(step);
  return step;
}

}  // namespace trireme
