#include "src/train/engine/micro_batch_output.h"

#include <algorithm>

#include "src/base/fault.h"

namespace trireme {

void MicroBatchOutput::read(HostReads& reads) {
  if (!losses.empty()) {
    reads_.push_back(reads.add(losses.view()));
  }
  if (!sample_losses.empty()) {
    read_of_samples_ = reads.add(sample_losses.view());
  }
  if (!taught.empty()) {
    read_of_parts_ = reads.add(taught.view());
  }
  if (has_digests) {
    for (const auto& [m, watch] : watches) {
      reads_.push_back(reads.add(watch->digests()));
    }
  }
}

namespace {

std::vector<double> values_of(const HostReads& reads, const std::optional<std::size_t>& number) {
  if (!number) {
    return {};
  }
  const auto found = reads.at<double>(*number);
  return {found.begin(), found.end()};
}

}  // namespace

std::vector<double> MicroBatchOutput::losses_of_samples(const HostReads& reads) const {
  return values_of(reads, read_of_samples_);
}

std::vector<double> MicroBatchOutput::parts_of_losses(const HostReads& reads) const {
  return values_of(reads, read_of_parts_);
}

MicroBatchBits MicroBatchOutput::bits(const HostReads& reads) const {
  const auto count = static_cast<std::size_t>(micro_batches);
  MicroBatchBits bits;
  bits.losses.resize(count, 0.0);
  auto read = reads_.begin();
  if (!losses.empty()) {
    const auto found = reads.at<double>(*read++);
    std::copy(found.begin(), found.end(), bits.losses.begin());
  }
  if (faults_armed()) {
    float factor = 1;
    fault("step.loss", &factor, sizeof factor);
    bits.losses.front() *= static_cast<double>(factor);
  }
  if (has_digests) {
    bits.digests.resize(count, 0);
    for (const auto& [m, watch] : watches) {
      bits.digests[static_cast<std::size_t>(m)] += watch->digest(reads.at<std::int64_t>(*read++));
    }
  }
  return bits;
}

}  // namespace trireme
