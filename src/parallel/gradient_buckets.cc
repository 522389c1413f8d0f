#include "src/parallel/gradient_buckets.h"

#include <algorithm>

namespace trireme {
namespace {

class Cutter {
 public:
  Cutter(const ParameterStore& parameters, std::int64_t bucket_bytes,
         const std::vector<ParameterId>& borders)
      : parameters_(parameters),
        full_((bucket_bytes + size_of(DType::f32) - 1) / size_of(DType::f32)),
        borders_(borders) {}

  std::vector<GradientBucket> cut() {
    for (ParameterId end = parameters_.count(); end > 0;) {
      const ParameterId begin = segment_before(end);
      if (!parameters_[begin].trained) {
        close();
      } else if (borders_.empty() || elements(begin, end) > 2 * full_) {
        close();
        cut_inside(begin, end);
      } else {
        append(begin, end, 2 * full_);
      }
      end = begin;
    }
    close();
    return std::move(buckets_);
  }

 private:
  // Returns where the segment before `end` begins: the parameters after the nearest border before
  // `end` that are all trained or all not.
  ParameterId segment_before(ParameterId end) const {
    ParameterId begin = unit_before(end);
    while (begin > 0 && !std::binary_search(borders_.begin(), borders_.end(), begin) &&
           parameters_[begin - 1].trained == parameters_[end - 1].trained) {
      begin = unit_before(begin);
    }
    return begin;
  }

  // Returns where the joined parameters that end at `end` begin.
  ParameterId unit_before(ParameterId end) const {
    ParameterId begin = end - 1;
    while (parameters_[begin].joined) {
      --begin;
    }
    return begin;
  }

  void cut_inside(ParameterId begin, ParameterId end) {
    while (end > begin) {
      const ParameterId unit = unit_before(end);
      append(unit, end, elements(unit, end) >= full_ ? 0 : 2 * full_);
      end = unit;
    }
    close();
  }

  // Adds parameters to the open bucket if it then holds at most `most` elements, or to a new one.
  void append(ParameterId begin, ParameterId end, std::int64_t most) {
    if (open_.elements + elements(begin, end) > most) {
      close();
    }
    open_.end = open_.elements == 0 ? end : open_.end;
    open_.begin = begin;
    open_.first = parameters_[begin].offset;
    open_.elements += elements(begin, end);
    if (open_.elements >= full_) {
      close();
    }
  }

  void close() {
    if (open_.elements > 0) {
      buckets_.push_back(open_);
    }
    open_ = {};
  }

  std::int64_t elements(ParameterId begin, ParameterId end) const {
    const std::int64_t behind =
        end < parameters_.count() ? parameters_[end].offset : parameters_.flat_elements();
    return behind - parameters_[begin].offset;
  }

  const ParameterStore& parameters_;
  std::int64_t full_;
  const std::vector<ParameterId>& borders_;
  std::vector<GradientBucket> buckets_;
  GradientBucket open_;
};

}  // namespace

std::vector<GradientBucket> cut_into_buckets(const ParameterStore& parameters,
                                             std::int64_t bucket_bytes,
                                             const std::vector<ParameterId>& borders) {
  check(bucket_bytes > 0, "a bucket holds something");
  return Cutter(parameters, bucket_bytes, borders).cut();
}

}  // namespace trireme
