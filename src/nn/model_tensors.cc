#include "src/nn/model_tensors.h"

#include "src/compute/device_context.h"
#include "src/nn/model.h"

namespace trireme {

std::vector<ModelTensor> model_tensors(const ModelConfig& config) {
  DeviceContext context(Device::cpu(), 1);
  ParameterStore store(context, DType::f32);
  const Model model(config, store);
  std::vector<ModelTensor> tensors;
  for (const ParameterId id : store.ids_by_name()) {
    tensors.push_back({store[id].name, store[id].place.whole, store[id].frozen});
  }
  return tensors;
}

}  // namespace trireme
