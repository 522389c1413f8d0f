// HfFiles finds the tensors of a model in safetensors files as Hugging Face's transformers write
// them: one file, or several with a list of what lies where:
//
//   model.safetensors
//   model-00001-of-00002.safetensors, ..., model.safetensors.index.json:
//     {"metadata": {"total_size": N}, "weight_map": {"tensor": "model-00001-of-00002.safetensors"}}
//
// Only headers are kept in memory. Any thread may read.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "src/device/dtype.h"
#include "src/policy/label.h"

namespace trireme {

struct HfTensor {
  std::size_t file = 0;  // index of the file
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;  // bytes from the start of the file
  std::int64_t elements() const;
};

class HfFiles {
 public:
  // source: a folder, or one file. Throws NotFound if nothing is there, and DataError that names
  // the file for damage, for missing shards and for a list that contradicts the files, and
  // ConfigError for shards of a checkpoint, which have no label of their own.
  explicit HfFiles(const std::filesystem::path& source);

  const std::map<std::string, HfTensor>& tensors() const { return tensors_; }
  // Returns null if there is no tensor of that name.
  const HfTensor* find(const std::string& name) const;
  std::int64_t bytes() const;  // sum over all files
  // Returns the join of the labels in the files' metadata (io/checkpoint/exported_metadata.h).
  // order: of the classifications, from the lowest. Throws PolicyError if it lacks one.
  std::optional<Label> label(const std::vector<std::string>& order) const;
  // Returns the files that were read: those with tensors, and the list of them if there is one.
  std::vector<std::filesystem::path> paths() const;
  const std::filesystem::path& path_of(const HfTensor& tensor) const {
    return files_[tensor.file].path();
  }

  // Reads the row-major elements [first, first + count) of a tensor as floats. Throws DataError
  // that names the tensor if one of them is not finite or is of an integer type.
  void read(const std::string& name, std::int64_t first, std::int64_t count, float* to) const;

 private:
  void open_single(const std::filesystem::path& path);
  void open_listed(const std::filesystem::path& list);
  void add_file(const std::filesystem::path& path);

  std::filesystem::path list_;  // empty if there is none
  std::vector<File> files_;
  std::map<std::string, HfTensor> tensors_;
  std::vector<Label> labels_;
};

}  // namespace trireme
