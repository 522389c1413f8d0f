// CheckpointLabel is the label of the checkpoints that a run saves: the join of those of everything
// it has read, and what the site's policy says about reading and saving them. Owned by
// TrainingCheckpoints; every call but join() and value() is collective.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "io/checkpoint/manifest.h"
#include "mpi/communicator.h"
#include "src/policy/access.h"
#include "src/train/run/used_dataset.h"

namespace trireme {

class CheckpointLabel {
 public:
  // access: null on all ranks if no policy is asked. label: of the training data.
  CheckpointLabel(const Access* access, Communicator& world, std::filesystem::path folder,
                  std::optional<Label> label)
      : access_(access), world_(world), folder_(std::move(folder)), label_(std::move(label)) {}

  // Throw PolicyError on all ranks alike.
  void check_reading(const Manifest& manifest, const std::filesystem::path& folder) const;
  void check_writing() const;

  void join(const std::optional<Label>& other);
  void join(const std::vector<UsedDataset>& datasets) {
    for (const UsedDataset& each : datasets) {
      join(each.label);
    }
  }
  const std::optional<Label>& value() const { return label_; }

 private:
  const Access* access_;
  Communicator& world_;
  std::filesystem::path folder_;
  std::optional<Label> label_;
};

}  // namespace trireme
