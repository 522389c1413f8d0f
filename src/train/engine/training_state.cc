#include "src/train/engine/training_state.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <nlohmann/json.hpp>

#include "io/checkpoint/keep_steps.h"
#include "src/base/json_number.h"
#include "src/train/run/run_limits.h"

namespace trireme {
namespace {

// The largest number of batches of a run, including those left out; counted in tokens, it is far
// from 2^63.
constexpr std::int64_t kMostBatches = std::int64_t{1} << 40;

// Reads the windows of a run at `step` that has rewound. A rewind to a checkpoint from before an
// earlier rewind drops that one's window, so that there may be fewer windows than rewinds.
std::vector<DataWindow> windows_field(const nlohmann::json& object, std::int64_t step,
                                      std::int64_t rewinds) {
  const nlohmann::json& windows = array_field(object, "left_out");
  if (windows.empty() || windows.size() > static_cast<std::size_t>(rewinds)) {
    throw DataError(
        fmt::format("left_out: {} windows do not match rewinds: {}", windows.size(), rewinds));
  }
  std::vector<DataWindow> left_out;
  std::int64_t batches = 0;  // in the windows so far
  for (const nlohmann::json& window : windows) {
    left_out.push_back({count_field(window, "step", 0, step), count_field(window, "first"),
                        count_field(window, "count", 1, kMostBatches)});
    if (left_out.back().first != left_out.back().step + batches) {
      throw DataError(fmt::format("left_out: a window at step {} begins at batch {} instead of {}",
                                  left_out.back().step, left_out.back().first,
                                  left_out.back().step + batches));
    }
    batches += left_out.back().count;
    if (batches > kMostBatches) {
      throw DataError(fmt::format("left_out: {} batches are more than a run can have", batches));
    }
  }
  return left_out;
}

// Every step updates the weights or is skipped. A rewind takes all these counters back together.
void check_sums(const TrainingCounters& c) {
  if (c.updates + c.skipped_steps != c.step) {
    throw DataError(
        fmt::format("counters: updates {} and skipped_steps {} do not add up to step {}", c.updates,
                    c.skipped_steps, c.step));
  }
  if (c.skipped_in_a_row > c.skipped_steps) {
    throw DataError(fmt::format("counters: skipped_in_a_row {} is more than skipped_steps {}",
                                c.skipped_in_a_row, c.skipped_steps));
  }
}

// Reads the finite numbers of a spike history.
std::vector<double> values_field(const nlohmann::json& object, const char* name) {
  const nlohmann::json& list = array_field(object, name);
  if (list.size() > static_cast<std::size_t>(kMostSpikeWindow)) {
    throw DataError(fmt::format("{}: {} steps are more than the largest divergence.window of {}",
                                name, list.size(), kMostSpikeWindow));
  }
  std::vector<double> values;
  for (const nlohmann::json& value : list) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) {
      throw DataError(fmt::format("{}: expected finite numbers", name));
    }
    values.push_back(value.get<double>());
  }
  return values;
}

// Reads the magnitudes of products in 8 bits.
Fp8History fp8_field(const nlohmann::json& object) {
  Fp8History history;
  for (const auto& [name, roles] : object_field(object, "fp8").items()) {
    auto& own = history[name];
    if (!roles.is_array() || roles.size() != own.size()) {
      throw DataError(fmt::format("fp8: '{}' does not have {} lists", name, own.size()));
    }
    for (std::size_t role = 0; role < own.size(); ++role) {
      if (!roles[role].is_array() || roles[role].size() > static_cast<std::size_t>(kMostFp8Steps)) {
        throw DataError(
            fmt::format("fp8: '{}' does not have lists of up to {} steps", name, kMostFp8Steps));
      }
      for (const nlohmann::json& most : roles[role]) {
        if (!most.is_number() || !(most.get<double>() > 0) || !(most.get<double>() < 1e39)) {
          throw DataError(fmt::format("fp8: '{}' has a magnitude that is not above 0", name));
        }
        own[role].push_back(most.get<float>());
      }
    }
  }
  return history;
}

// Reads the windows of the sources of a mixture.
std::vector<SourceWindow> source_windows_field(const nlohmann::json& object) {
  constexpr std::size_t kMostWindows = 256;
  const nlohmann::json& list = array_field(object, "source_windows");
  if (list.size() > kMostWindows) {
    throw DataError(fmt::format("source_windows: {} sources are more than the largest number of {}",
                                list.size(), kMostWindows));
  }
  std::vector<SourceWindow> windows;
  for (const nlohmann::json& window : list) {
    windows.push_back({finite_field(window, "sum"), count_field(window, "samples")});
  }
  return windows;
}

// Reads the state of loss scaling of a run that has skipped `skipped_steps` steps.
LossScale loss_scale_field(const nlohmann::json& object, std::int64_t skipped_steps) {
  const nlohmann::json& fields = object_field(object, "loss_scale");
  const LossScale state{finite_field(fields, "scale"), count_field(fields, "steps"),
                        count_field(fields, "overflows", 0, skipped_steps)};
  if (!is_loss_scale(state.scale)) {
    throw DataError(
        fmt::format("loss_scale: {} is not a power of two that a run can have", state.scale));
  }
  return state;
}

// Appends the blocks of the held elements [first, first + data.count) of a parameter or its state.
void add_blocks(const std::string& name, const Place& place, std::int64_t first, const View& data,
                std::vector<TensorBlock>& blocks) {
  for (const HeldBlock& held : blocks_of(place, first, data.count)) {
    const std::int64_t span = block_rows(held.extent, held.pitch).span(held.extent.elements());
    blocks.push_back(
        {name, place.whole, held.extent, data.slice(held.first - first, span), held.pitch});
  }
}

}  // namespace

void add_blocks(const ParameterStore& parameters, const std::vector<StatePiece>& pieces,
                std::vector<TensorBlock>& blocks) {
  for (const StatePiece& piece : pieces) {
    const Parameter& p = parameters[piece.id];
    add_blocks(p.name, p.place, piece.first, piece.value, blocks);
    for (std::size_t i = 0; i < piece.states.size(); ++i) {
      add_blocks(fmt::format("{}.{}", piece.state_names[i], p.name), p.place, piece.first,
                 piece.states[i], blocks);
    }
  }
}

std::vector<TensorBlock> parameters_to_load(const MasterWeights& masters, Weights which) {
  const std::string prefix = which == Weights::average ? fmt::format("{}.", kAverageName) : "";
  std::vector<TensorBlock> blocks;
  for (ParameterId id = 0; id < masters.store().count(); ++id) {
    const Parameter& p = masters.store()[id];
    blocks.push_back(
        {prefix + p.name, p.place.whole, Extent::whole(p.place.whole), masters.value(id)});
  }
  return blocks;
}

void LossWindow::add(double loss) {
  if (std::isfinite(loss)) {
    sum += loss;
    ++steps;
  }
}

double LossWindow::mean() const {
  return steps == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(steps);
}

void SourceWindow::add(double loss_of_sample) {
  if (std::isfinite(loss_of_sample)) {
    sum += loss_of_sample;
    ++samples;
  }
}

double SourceWindow::mean(std::int64_t tokens_per_sample) const {
  return samples == 0 ? std::numeric_limits<double>::quiet_NaN()
                      : sum / static_cast<double>(samples) / static_cast<double>(tokens_per_sample);
}

std::int64_t TrainingCounters::batches() const {
  std::int64_t batches = step;
  for (const DataWindow& window : left_out) {
    batches += window.count;
  }
  return batches;
}

std::vector<std::pair<std::int64_t, std::int64_t>> TrainingCounters::used_samples(
    const BatchSchedule& schedule) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> used;
  std::int64_t first = 0;  // step
  std::int64_t skipped = 0;
  const auto add_steps_to = [&](std::int64_t end) {
    if (end > first) {
      used.emplace_back(schedule.before(first + skipped), schedule.before(end + skipped));
    }
    first = end;
  };
  for (const DataWindow& window : left_out) {
    add_steps_to(std::clamp(window.step, first, step));
    skipped += window.count;
  }
  add_steps_to(step);
  return used;
}

std::int64_t TrainingCounters::samples(const BatchSchedule& schedule) const {
  std::int64_t samples = 0;
  for (const auto& [first, end] : used_samples(schedule)) {
    samples += end - first;
  }
  return samples;
}

void leave_out(TrainingCounters& now, const TrainingCounters& failed, std::int64_t more) {
  const std::int64_t first = now.batches();
  const std::int64_t count = failed.batches() + 1 + more - first;
  check(count > 0, "a run goes back, not ahead");
  now.left_out.push_back({now.step, first, count});
  now.rewinds = failed.rewinds + 1;
}

bool has_passed(const TrainingCounters& now, const TrainingCounters& earlier) {
  const std::size_t known = earlier.left_out.size();
  return earlier.step <= now.step && known <= now.left_out.size() &&
         std::equal(earlier.left_out.begin(), earlier.left_out.end(), now.left_out.begin()) &&
         std::all_of(now.left_out.begin() + static_cast<std::ptrdiff_t>(known), now.left_out.end(),
                     [&](const DataWindow& window) { return window.step >= earlier.step; });
}

nlohmann::json to_json(const TrainingCounters& c) {
  nlohmann::json json = {{"step", c.step},
                         {"updates", c.updates},
                         {"skipped_steps", c.skipped_steps},
                         {"skipped_in_a_row", c.skipped_in_a_row}};
  if (c.rewinds > 0) {
    json["rewinds"] = c.rewinds;
    for (const DataWindow& window : c.left_out) {
      json["left_out"].push_back(
          {{"step", window.step}, {"first", window.first}, {"count", window.count}});
    }
  }
  if (!c.history.losses.empty()) {
    json["history"] = {{"losses", c.history.losses}, {"grad_norms", c.history.norms}};
  }
  if (c.loss_window.steps > 0) {
    json["loss_window"] = {{"sum", c.loss_window.sum}, {"steps", c.loss_window.steps}};
  }
  for (const SourceWindow& window : c.source_windows) {
    json["source_windows"].push_back({{"sum", window.sum}, {"samples", window.samples}});
  }
  if (!c.validation.empty()) {
    json["validation"] = to_json(c.validation);
  }
  for (const auto& [name, roles] : c.fp8) {
    json["fp8"][name] = roles;
  }
  if (c.loss_scale.scale > 0) {
    json["loss_scale"] = {{"scale", c.loss_scale.scale},
                          {"steps", c.loss_scale.steps},
                          {"overflows", c.loss_scale.overflows}};
  }
  return json;
}

void put_counters(const TrainingCounters& counters, nlohmann::json& extra) {
  extra["counters"] = to_json(counters);
  extra.erase(kKeepStepsField);
  for (const EvaluatedStep& best : counters.validation.best) {
    extra[kKeepStepsField].push_back(best.step);
  }
}

TrainingCounters counters_from_json(const nlohmann::json& json) {
  TrainingCounters c{count_field(json, "step", 0, kMostSteps), count_field(json, "updates"),
                     count_field(json, "skipped_steps"), count_field(json, "skipped_in_a_row")};
  check_sums(c);
  if (json.contains("rewinds") || json.contains("left_out")) {
    c.rewinds = count_field(json, "rewinds", 1);
    c.left_out = windows_field(json, c.step, c.rewinds);
  }
  if (json.contains("history")) {
    const nlohmann::json& history = object_field(json, "history");
    c.history = {values_field(history, "losses"), values_field(history, "grad_norms")};
    if (c.history.losses.size() != c.history.norms.size()) {
      throw DataError("history: there are not as many losses as gradient norms");
    }
  }
  if (json.contains("loss_window")) {
    const nlohmann::json& window = object_field(json, "loss_window");
    c.loss_window = {finite_field(window, "sum"), count_field(window, "steps", 1)};
  }
  if (json.contains("source_windows")) {
    c.source_windows = source_windows_field(json);
  }
  if (json.contains("fp8")) {
    c.fp8 = fp8_field(json);
  }
  if (json.contains("loss_scale")) {
    c.loss_scale = loss_scale_field(json, c.skipped_steps);
  }
  if (json.contains("validation")) {
    c.validation = validation_history_from_json(object_field(json, "validation"));
  }
  return c;
}

TrainingCounters counters_of(const CheckpointMeta& meta) {
  TrainingCounters counters = counters_from_json(object_field(*meta.extra, "counters"));
  if (counters.step != meta.step) {
    throw DataError(fmt::format("the checkpoint is of step {}, but its counters are at step {}",
                                meta.step, counters.step));
  }
  return counters;
}

}  // namespace trireme
