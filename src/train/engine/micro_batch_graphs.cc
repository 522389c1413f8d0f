#include "src/train/engine/micro_batch_graphs.h"

#include <algorithm>

#include "src/compute/counting_device.h"

namespace trireme {
namespace {

// Returns whether training drops elements or weights of attention. Which ones depends on the step
// and the sample.
bool draws_masks(const ModelConfig& model) {
  return model.dropout > 0 || model.attention_dropout > 0;
}

}  // namespace

std::string why_no_graphs(const RunConfig& config, const Layout& layout, Device device) {
  if (config.train.graphs == "off") {
    return "train.graphs is off";
  }
  if (!acts_as_cuda(device)) {
    return "the ranks do not compute on GPUs";
  }
  if (config.data.separates_documents()) {
    return "data.documents is separate, whose calls differ from one micro-batch to the next";
  }
  if (config.distill.is_on()) {
    return "distill.teacher is set, whose passes have not been tried in graphs";
  }
  if (layout.zero == 3) {
    return "parallel.zero is 3, which gathers parameters to other places each time";
  }
  if (layout.schedule == PipelineSchedule::zero_bubble && config.model.trains_tied_matrix() &&
      layout.grid.pp() > 1) {
    return "parallel.schedule is zero_bubble, with which the gradient of a tied embedding is "
           "completed between the two halves of a backward pass";
  }
  if (config.train.uses_fp8()) {
    return "train.products is fp8, whose products have not been tried in graphs";
  }
  if (config.divergence.digests) {
    return "divergence.digests takes a digest of each gradient of a micro-batch";
  }
  return "";
}

MicroBatchGraphs::MicroBatchGraphs(const ModelChunks& chunks, TensorGroup& group,
                                   DeviceContext& context, const ModelConfig& model)
    : chunks_(chunks),
      group_(group),
      context_(context),
      drops_(draws_masks(model)),
      flights_(chunks.size()) {}

FlightGraphs& MicroBatchGraphs::idle(int chunk) {
  const auto at = static_cast<std::size_t>(chunk);
  auto& flights = flights_[at];
  const auto found = std::find_if(flights.begin(), flights.end(),
                                  [](const auto& flight) { return !flight->is_busy(); });
  if (found != flights.end()) {
    return **found;
  }
  flights.push_back(
      std::make_unique<FlightGraphs>(FlightGraphs::Parts{*chunks_[at], group_, context_, drops_}));
  return *flights.back();
}

void MicroBatchGraphs::begin_step() {
  for (auto& flights : flights_) {
    std::erase_if(flights, [](const auto& flight) { return flight->is_busy(); });
  }
}

std::int64_t MicroBatchGraphs::activation_bytes() const {
  std::int64_t sum = 0;
  for (const auto& flights : flights_) {
    for (const auto& flight : flights) {
      sum += flight->activation_bytes();
    }
  }
  return sum;
}

std::int64_t MicroBatchGraphs::exchanged_bytes() const {
  std::int64_t sum = 0;
  for (const auto& flights : flights_) {
    for (const auto& flight : flights) {
      sum += flight->exchanged_bytes();
    }
  }
  return sum;
}

}  // namespace trireme
