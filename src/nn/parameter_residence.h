// ParameterResidence decides when the working copies of parameters are in memory (ZeRO 3 gathers
// them layer by layer; Rajbhandari et al., ZeRO, 2020). A model requests the parameters of a layer
// before the layer runs, and releases them after it. Implemented in src/parallel. One thread; the
// ranks that share a parameter make the same calls in the same order.
#pragma once

#include "src/nn/parameter.h"

namespace trireme {

class ParameterResidence {
 public:
  virtual ~ParameterResidence() = default;
  // On return, the working copies of [first, end) are in memory. They stay there until release()
  // has been called as often as need().
  virtual void need(ParameterId first, ParameterId end) = 0;
  // Starts to bring in parameters that will be needed soon, and keeps those that are in memory.
  virtual void prefetch(ParameterId first, ParameterId end) = 0;
  virtual void release(ParameterId first, ParameterId end) = 0;
};

}  // namespace trireme
