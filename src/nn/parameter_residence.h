// ParameterResidence: whoever decides when the computes of parameters are in memory (ZeRO 3 gathers
// them layer by layer; Rajbhandari et al., ZeRO, 2020). A model asks for what a layer reads before
// it runs, and gives it back behind it. Implemented in src/parallel. One thread; the ranks that
// share a parameter make the same calls in the same order.
#pragma once

#include "src/nn/parameter.h"

namespace trireme {

class ParameterResidence {
 public:
  virtual ~ParameterResidence() = default;
  // The computes of [first, end) are there on return, and stay until they are released as often as
  // they were needed.
  virtual void need(ParameterId first, ParameterId end) = 0;
  // They will be needed soon: starts to bring them, and keeps what is there already.
  virtual void prefetch(ParameterId first, ParameterId end) = 0;
  virtual void release(ParameterId first, ParameterId end) = 0;
};

}  // namespace trireme
