#include "src/train/saving/checkpoint_label.h"

#include "src/train/run/access_check.h"

namespace trireme {

void CheckpointLabel::check_reading(const Manifest& manifest,
                                    const std::filesystem::path& folder) const {
  if (access_ != nullptr) {
    check_on_all_ranks(*access_, {Deed::read, Thing::checkpoint, folder, manifest.meta.label},
                       world_);
  }
}

void CheckpointLabel::check_writing() const {
  if (access_ != nullptr) {
    check_on_all_ranks(*access_, {Deed::write, Thing::checkpoint, folder_, label_}, world_);
  }
}

void CheckpointLabel::join(const std::optional<Label>& other) {
  label_ = trireme::join(
      label_, other, access_ == nullptr ? default_classifications() : access_->classifications());
}

}  // namespace trireme
