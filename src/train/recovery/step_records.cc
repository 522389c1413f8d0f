#include "src/train/recovery/step_records.h"

#include <algorithm>
#include <bit>

#include <fmt/core.h>

namespace trireme {
namespace {

// A NaN equals a NaN with the same bits.
bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

std::string was_and_is(const std::string& what, double first, double again) {
  return same_bits(first, again) ? "" : fmt::format("{} was {} and is now {}", what, first, again);
}

}  // namespace

std::string difference(const StepRecord& first, const StepRecord& again,
                       const std::vector<std::int64_t>& numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::string loss = was_and_is(fmt::format("the loss of micro-batch {}", numbers[i]),
                                        first.bits.losses.at(i), again.bits.losses.at(i));
    if (!loss.empty()) {
      return loss;
    }
    if (!first.bits.digests.empty() && first.bits.digests.at(i) != again.bits.digests.at(i)) {
      return fmt::format("the gradient of micro-batch {} has different bits", numbers[i]);
    }
  }
  return "";
}

std::string difference_of_sums(const StepRecord& first, const StepRecord& again) {
  const std::string loss = was_and_is("the loss", first.loss, again.loss);
  return loss.empty() ? was_and_is("the gradient norm", first.grad_norm, again.grad_norm) : loss;
}

void StepRecords::add(StepRecord record) {
  if (most_ == 0) {
    return;
  }
  while (!records_.empty() && records_.back().step >= record.step) {
    records_.pop_back();
  }
  records_.push_back(std::move(record));
  while (static_cast<std::int64_t>(records_.size()) > most_) {
    records_.pop_front();
  }
}

const StepRecord* StepRecords::find(std::int64_t step) const {
  const auto found = std::lower_bound(
      records_.begin(), records_.end(), step,
      [](const StepRecord& record, std::int64_t wanted) { return record.step < wanted; });
  return found != records_.end() && found->step == step ? &*found : nullptr;
}

}  // namespace trireme
