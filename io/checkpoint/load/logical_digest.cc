#include "io/checkpoint/load/logical_digest.h"

#include <algorithm>

#include "io/checkpoint/load/load_step.h"
#include "io/checkpoint/staging.h"
#include "src/base/digest.h"

namespace trireme {
namespace {

constexpr std::int64_t kBatchBytes = std::int64_t{64} << 20;

// Reads tensors in batches of flat ranges: many small tensors, or a part of a large one, at a time.
class DigestStream {
 public:
  DigestStream(const std::filesystem::path& folder, const Manifest& manifest)
      : folder_(folder), manifest_(manifest), buffer_(kBatchBytes) {}

  void add(const StoredTensor& tensor) {
    const std::int64_t size = size_of(tensor.dtype);
    std::string title = tensor.name + '\0' + std::string(dtype_name(tensor.dtype)) + '\0' +
                        tensor.shape.to_string() + '\0';
    for (std::int64_t first = 0; first == 0 || first < tensor.shape.elements();) {
      const std::int64_t room = (kBatchBytes - used_) / size;
      const std::int64_t count = std::min(room, tensor.shape.elements() - first);
      std::byte* at = buffer_.data() + used_;
      blocks_.push_back(
          {tensor.name, tensor.shape, Extent::flat(first, count), View{at, count, tensor.dtype}});
      titles_.push_back(std::move(title));
      title.clear();
      used_ += round_up(count * size, 8);
      first += std::max<std::int64_t>(count, tensor.shape.elements() == 0 ? 1 : 0);
      if (kBatchBytes - used_ < 8) {
        flush();
      }
    }
  }

  std::string finish() {
    flush();
    return "sha256:" + digest_.finish_hex();
  }

 private:
  void flush() {
    load_step(folder_, manifest_, blocks_);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      digest_.update(titles_[i]);
      digest_.update(blocks_[i].data.data, blocks_[i].data.bytes());
    }
    blocks_.clear();
    titles_.clear();
    used_ = 0;
  }

  const std::filesystem::path& folder_;
  const Manifest& manifest_;
  PageBuffer buffer_;
  std::int64_t used_ = 0;
  std::vector<TensorBlock> blocks_;
  std::vector<std::string> titles_;
  Sha256 digest_;
};

}  // namespace

std::string logical_digest(const std::filesystem::path& step_folder, const Manifest& manifest,
                           DigestScope scope) {
  DigestStream stream(step_folder, manifest);
  for (const StoredTensor& tensor : manifest.tensors) {
    if (scope == DigestScope::all || !tensor.name.starts_with("optimizer.")) {
      stream.add(tensor);
    }
  }
  return stream.finish();
}

}  // namespace trireme
