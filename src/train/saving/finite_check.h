// Checks that weights and optimizer state are numbers, so that no checkpoint of a run that has
// diverged takes the place of a good one.
#pragma once

#include <string>
#include <vector>

#include "io/checkpoint/types.h"
#include "src/compute/device_context.h"

namespace trireme {

enum class FiniteCheck {
  weights,  // no weight is NaN or infinite
  all,      // and no element of the optimizer's state is NaN; squares of gradients may be infinite
  finite,   // no element of any block is NaN or infinite
};

// Returns "" if the blocks on this rank pass the check, otherwise the name of the first tensor that
// does not, and why. Waits for the stream. Reads the f32 blocks once.
std::string fault_of_numbers(DeviceContext& context, const std::vector<TensorBlock>& blocks,
                             FiniteCheck check);

// Returns "" unless a block of second moments in the host's memory contains a negative number,
// whose root would turn the weights into NaN. Such a number comes from no run. Reads these blocks
// once.
std::string fault_of_moments(const std::vector<TensorBlock>& blocks);

}  // namespace trireme
