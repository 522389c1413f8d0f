#include "src/parallel/recorded_calls.h"

#include "src/base/check.h"

namespace trireme {

TensorGroup::Exchange RecordedGroup::start(View data, Exchange (TensorGroup::*operation)(View)) {
  const auto number = static_cast<std::size_t>(++started_);
  recorder_.act([this, data, operation, number] {
    numbers_.resize(number);
    numbers_.back() = (to_.*operation)(data);
  });
  return started_;
}

void RecordedGroup::finish(Exchange exchange) {
  if (exchange == 0) {
    return;
  }
  recorder_.act([this, exchange] {
    check(exchange <= static_cast<Exchange>(numbers_.size()), "an exchange ends after its start");
    to_.finish(numbers_[static_cast<std::size_t>(exchange - 1)]);
  });
}

}  // namespace trireme
