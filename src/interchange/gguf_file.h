// GgufFile reads the tensors of a GGUF file that this program has written, for the comparison at
// the end of an export. Any thread may read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "src/interchange/gguf.h"

namespace trireme {

class GgufFile {
 public:
  // Throws DataError that names the file if it is damaged.
  explicit GgufFile(const std::filesystem::path& path);

  const GgufHead& head() const { return head_; }
  // Returns all elements of a tensor. Throws DataError if there is none of that name.
  std::vector<float> read(const std::string& name) const;

 private:
  File file_;
  GgufHead head_;
};

}  // namespace trireme
