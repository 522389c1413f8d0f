#include "src/interchange/gguf_file.h"

#include <algorithm>

#include "src/base/data_error_in.h"
#include "src/base/error.h"

namespace trireme {
namespace {

// A head with the vocabulary of a large model has a few megabytes.
constexpr std::int64_t kMostHeadBytes = 256 << 20;

GgufHead read_head(const File& file) {
  const std::int64_t bytes = file.size();
  std::string text(static_cast<std::size_t>(std::min(bytes, kMostHeadBytes)), '\0');
  file.read_exactly_at(0, text.data(), std::ssize(text));
  try {
    return parse_gguf_head(text, bytes);
  } catch (const DataError& error) {
    throw data_error_in(file.path().string(), error);
  }
}

}  // namespace

GgufFile::GgufFile(const std::filesystem::path& path)
    : file_(File::open_to_read(path)), head_(read_head(file_)) {}

std::vector<float> GgufFile::read(const std::string& name) const {
  const auto at = std::find_if(head_.tensors.begin(), head_.tensors.end(),
                               [&](const GgufTensor& tensor) { return tensor.name == name; });
  if (at == head_.tensors.end()) {
    throw DataError(fmt::format("{}: the tensor {} is missing", file_.path().string(), name));
  }
  std::vector<std::byte> raw(static_cast<std::size_t>(at->bytes()));
  file_.read_exactly_at(head_.data_offset + at->offset, raw.data(), std::ssize(raw));
  std::vector<float> elements(static_cast<std::size_t>(at->elements()));
  dequantize(at->type, raw.data(), at->elements(), elements.data());
  return elements;
}

}  // namespace trireme
