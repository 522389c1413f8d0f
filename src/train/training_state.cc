#include "src/train/training_state.h"

#include <algorithm>
#include <string_view>

#include "src/base/json_fields.h"

namespace trireme {
namespace {

struct StateTensor {
  std::string name;
  const Shape* shape;  // of the logical tensor
  View data;  // f32, whole
};

std::vector<StateTensor> tensors_of(const ParameterStore& parameters,
                                    const AdamWOptimizer* optimizer) {
  std::vector<StateTensor> tensors;
  for (ParameterId id = 0; id < parameters.count(); ++id) {
    const Parameter& p = parameters[id];
    tensors.push_back({p.name, &p.place.whole, parameters.value(id)});
    if (optimizer != nullptr) {
      tensors.push_back({"optimizer.m." + p.name, &p.place.whole, optimizer->m(id)});
      tensors.push_back({"optimizer.v." + p.name, &p.place.whole, optimizer->v(id)});
    }
  }
  return tensors;
}

std::vector<BlockRequest> whole_requests(const std::vector<StateTensor>& tensors) {
  std::vector<BlockRequest> requests;
  for (const StateTensor& t : tensors) {
    requests.push_back({t.name, *t.shape, Extent::whole(*t.shape), t.data});
  }
  return requests;
}

}  // namespace

std::vector<TensorBlock> blocks_to_save(const ParameterStore& parameters,
                                        const AdamWOptimizer& optimizer, int rank, int ranks) {
  const std::vector<StateTensor> tensors = tensors_of(parameters, &optimizer);
  std::int64_t total = 0;
  for (const StateTensor& t : tensors) {
    total += t.data.count;
  }
  const std::int64_t first = total * rank / ranks;
  const std::int64_t end = total * (rank + 1) / ranks;

  std::vector<TensorBlock> blocks;
  std::int64_t at = 0;  // where the tensor starts in the run of all elements
  for (const StateTensor& t : tensors) {
    const std::int64_t from = std::clamp(first - at, std::int64_t{0}, t.data.count);
    const std::int64_t to = std::clamp(end - at, std::int64_t{0}, t.data.count);
    if (from < to) {
      const bool whole = from == 0 && to == t.data.count;
      blocks.push_back({t.name, t.data.dtype, *t.shape,
                        whole ? Extent::whole(*t.shape) : Extent::flat(from, to - from),
                        t.data.slice(from, to - from)});
    }
    at += t.data.count;
  }
  return blocks;
}

std::vector<BlockRequest> blocks_to_load(const ParameterStore& parameters,
                                         const AdamWOptimizer& optimizer) {
  return whole_requests(tensors_of(parameters, &optimizer));
}

std::vector<BlockRequest> parameters_to_load(const ParameterStore& parameters) {
  return whole_requests(tensors_of(parameters, nullptr));
}

nlohmann::json to_json(const TrainingCounters& c) {
  return {{"step", c.step},
          {"updates", c.updates},
          {"skipped_steps", c.skipped_steps},
          {"skipped_in_a_row", c.skipped_in_a_row}};
}

TrainingCounters counters_from_json(const nlohmann::json& json) {
  return {count_field(json, "step"), count_field(json, "updates"),
          count_field(json, "skipped_steps"), count_field(json, "skipped_in_a_row")};
}

}  // namespace trireme
