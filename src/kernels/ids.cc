#include "src/kernels/ids.h"

#include "src/base/ignored_target.h"

namespace trireme {

void check_ids(const ConstView& ids, std::int64_t count, std::int64_t limit) {
  const auto* data = as<std::int32_t>(ids);
  bool inside = true;
  for (std::int64_t i = 0; i < count; ++i) {
    inside = inside && data[i] >= 0 && data[i] < limit;
  }
  check(inside, "token ids lie within the vocabulary");
}

void check_targets(const ConstView& targets, std::int64_t count, std::int64_t limit) {
  const auto* data = as<std::int32_t>(targets);
  bool inside = true;
  for (std::int64_t i = 0; i < count; ++i) {
    inside = inside && data[i] >= kIgnoredTarget && data[i] < limit;
  }
  check(inside, "targets lie within the vocabulary, or are ignored");
}

}  // namespace trireme
