#include "src/interchange/model_label.h"

#include <algorithm>
#include <map>

#include "io/checkpoint/exported_metadata.h"
#include "io/checkpoint/safetensors.h"
#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/interchange/gguf_file.h"
#include "src/interchange/onnx/onnx_model.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

using Metadata = std::map<std::string, std::string>;

Metadata safetensors_metadata(const fs::path& path) {
  const File file = File::open_to_read(path);
  const std::int64_t bytes = file.size();
  std::string head(static_cast<std::size_t>(std::min<std::int64_t>(8, bytes)), '\0');
  file.read_exactly_at(0, head.data(), std::ssize(head));
  head.resize(static_cast<std::size_t>(safetensors_head_bytes(head, bytes)));
  file.read_exactly_at(0, head.data(), std::ssize(head));
  return parse_safetensors_header(head, bytes).metadata;
}

Metadata gguf_metadata(const fs::path& path) {
  Metadata found;
  const GgufFile file(path);
  for (const auto& [key, value] : file.head().values) {
    if (const auto* const text = std::get_if<std::string>(&value);
        text != nullptr && key == "trireme.label") {
      found["trireme_label"] = *text;
    }
  }
  return found;
}

Metadata onnx_metadata(const fs::path& path) {
  constexpr std::int64_t kMostGraphFileBytes = 1 << 30;
  return parse_onnx(read_file(path, kMostGraphFileBytes)).metadata;
}

Metadata metadata_of(const fs::path& path) {
  try {
    const std::string end = path.extension().string();
    return end == ".safetensors" ? safetensors_metadata(path)
           : end == ".gguf"      ? gguf_metadata(path)
           : end == ".onnx"      ? onnx_metadata(path)
                                 : Metadata{};
  } catch (const DataError&) {  // a file of another program, or of none
    return {};
  }
}

}  // namespace

std::optional<Label> label_of_exported_model(const fs::path& folder,
                                             const std::vector<std::string>& order) {
  std::optional<Label> all;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) {
      continue;
    }
    try {
      all = join(all, exported_label(metadata_of(entry.path())), order);
    } catch (const DataError& error) {
      throw data_error_in(entry.path().string(), error);
    }
  }
  return all;
}

}  // namespace trireme
