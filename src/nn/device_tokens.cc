#include "src/nn/device_tokens.h"

#include "src/base/error.h"
#include "src/base/ignored_target.h"
#include "src/compute/counting_device.h"

namespace trireme {
namespace {

// least: 0, or kIgnoredTarget for targets.
void check_ids(const ConstView& ids, std::int64_t least, std::int64_t vocab) {
  const auto* id = as<std::int32_t>(ids);
  for (std::int64_t i = 0; i < ids.count; ++i) {
    if (id[i] < least || id[i] >= vocab) {
      throw DataError(fmt::format(
          "token {} of the micro-batch is {}, but model.vocab is {}: the data was packed with a "
          "larger vocabulary than the model has",
          i, id[i], vocab));
    }
  }
}

// Copies ids to the device and makes `ids` refer to the copy.
Tensor move_to_device(DeviceContext& context, ConstView& ids) {
  if (ids.empty()) {
    return {};
  }
  Tensor copy(context.activations(), {ids.count}, DType::i32);
  context.stream().copy(copy.view(), ids);
  ids = copy.view();
  return copy;
}

}  // namespace

DeviceTokens::DeviceTokens(DeviceContext& context, const MicroBatch& host, std::int64_t vocab,
                           std::shared_ptr<const void> lease)
    : lease_(std::move(lease)), micro_batch_(host) {
  check_ids(host.ids, 0, vocab);
  check_ids(host.targets, kIgnoredTarget, vocab);
  if (acts_as_cuda(context.device())) {
    ids_ = move_to_device(context, micro_batch_.ids);
    targets_ = move_to_device(context, micro_batch_.targets);
  }
}

}  // namespace trireme
