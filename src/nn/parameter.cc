#include "src/nn/parameter.h"

#include <algorithm>
#include <numeric>

namespace trireme {
namespace {

// Buckets and shards are cut at multiples of it, so that the blocks of every sum stay whole.
constexpr std::int64_t kAlignment = kSumBlock;

}  // namespace

ParameterId ParameterStore::add(Parameter parameter) {
  check(where_.empty(), "parameters are declared before they are allocated");
  check(!parameter.joined || !parameters_.empty(), "a joined parameter has one before it");
  parameter.offset =
      parameter.joined ? parameters_.back().offset + parameters_.back().elements() : flat_elements_;
  const std::int64_t end = parameter.offset + parameter.elements();
  flat_elements_ = (end + kAlignment - 1) / kAlignment * kAlignment;
  parameters_.push_back(std::move(parameter));
  return count() - 1;
}

void ParameterStore::allocate() {
  working_copies_ = Tensor(context_.state(), {flat_elements_}, compute_dtype_);
  context_.stream().clear(working_copies_.view());
  place(0, count(), working_copies_.view());
}

void ParameterStore::place(ParameterId first, ParameterId end, const View& working_copies) {
  check(working_copies.empty() || working_copies.dtype == compute_dtype_,
        "working copies have the store's type");
  where_.resize(parameters_.size(), nullptr);
  for (ParameterId id = first; id < end; ++id) {
    const Parameter& parameter = (*this)[id];
    where_[static_cast<std::size_t>(id)] =
        working_copies.empty()
            ? nullptr
            : working_copies.slice(parameter.offset - (*this)[first].offset, parameter.elements())
                  .data;
  }
}

void ParameterStore::allocate(const std::vector<bool>& kept) {
  place(0, count(), {});
  for (ParameterId id = 0, end = 0; id < count(); id = end) {
    end = end_of_joined(id);
    if (kept[static_cast<std::size_t>(id)]) {
      kept_.emplace_back(context_.state(), Shape{joined_elements(id, end - id)}, compute_dtype_);
      context_.stream().clear(kept_.back().view());
      place(id, end, kept_.back().view());
    }
  }
}

std::int64_t ParameterStore::working_bytes() const {
  std::int64_t bytes = 0;
  for (ParameterId id = 0; id < count(); ++id) {
    const bool present = where_[static_cast<std::size_t>(id)] != nullptr;
    bytes += present ? (*this)[id].elements() * size_of(compute_dtype_) : 0;
  }
  return bytes;
}

View ParameterStore::compute(ParameterId first, int count) const {
  const auto index = static_cast<std::size_t>(first);
  const bool present = index < where_.size() && where_[index] != nullptr;
  check(present, "the working copy of a parameter is in memory while it is used");
  return {where_[index], joined_elements(first, count), compute_dtype_, context_.device()};
}

std::vector<ParameterId> ParameterStore::ids_by_name() const {
  std::vector<ParameterId> ids(parameters_.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::sort(ids.begin(), ids.end(),
            [this](ParameterId a, ParameterId b) { return (*this)[a].name < (*this)[b].name; });
  return ids;
}

ParameterId ParameterStore::end_of_joined(ParameterId first) const {
  ParameterId end = first + 1;
  while (end < count() && (*this)[end].joined) {
    ++end;
  }
  return end;
}

std::int64_t ParameterStore::joined_elements(ParameterId first, int count) const {
  std::int64_t elements = 0;
  for (ParameterId id = first; id < first + count; ++id) {
    elements += (*this)[id].elements();
  }
  return elements;
}

std::int64_t ParameterStore::parameter_elements() const {
  return std::accumulate(
      parameters_.begin(), parameters_.end(), std::int64_t{0},
      [](std::int64_t sum, const Parameter& parameter) { return sum + parameter.elements(); });
}

}  // namespace trireme
