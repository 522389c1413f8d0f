#include "src/train/engine/gradient_watch.h"

#include "src/base/digest.h"
#include "src/base/philox.h"
#include "src/train/engine/device_fault.h"

namespace trireme {

GradientWatch::GradientWatch(const ParameterStore& parameters, GradientSink& to, bool digests)
    : parameters_(parameters), to_(to) {
  if (digests) {
    digests_ = Tensor(parameters.context().activations(), {parameters.count()}, DType::i64);
  }
}

void GradientWatch::ready(ParameterId id) {
  DeviceContext& context = parameters_.context();
  const View gradient = to_.gradient(id);
  if (ready_.empty()) {
    device_fault("step.gradient", gradient, context);
  }
  if (!digests_.empty()) {
    context.kernels().digest(context.stream(), digests_.view().slice(id, 1), gradient);
  }
  ready_.push_back(id);
  to_.ready(id);
}

std::uint64_t GradientWatch::digest(std::span<const std::int64_t> digests) const {
  std::uint64_t all = 0;
  for (const ParameterId id : ready_) {
    const std::string& name = parameters_[id].name;
    all += mix64(static_cast<std::uint64_t>(digests[static_cast<std::size_t>(id)]) ^
                 xxh3(name.data(), static_cast<std::int64_t>(name.size())));
  }
  return all;
}

}  // namespace trireme
