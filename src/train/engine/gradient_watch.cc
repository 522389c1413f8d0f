#include "src/train/engine/gradient_watch.h"

#include "src/base/digest.h"
#include "src/base/fault.h"
#include "src/base/philox.h"

namespace trireme {

void GradientWatch::ready(ParameterId id) {
  const View gradient = to_.gradient(id);
  if (!passed_point_) {
    passed_point_ = true;
    fault("step.gradient", gradient.data, gradient.bytes());
  }
  if (digest_ != nullptr) {
    const std::string& name = parameters_[id].name;
    *digest_ += mix64(xxh3(gradient.data, gradient.bytes()) ^
                      xxh3(name.data(), static_cast<std::int64_t>(name.size())));
  }
  to_.ready(id);
}

}  // namespace trireme
