// HfModel is a model as Hugging Face's transformers save it: its configuration, and files whose
// tensors were found to be those that the configuration says. The layouts are this program's own
// (src/nn/model_parts.h), so that only names and element types differ:
//
//   - GPT-2 may lack the prefix "transformer." in all names;
//   - masks and rotary frequencies that old versions stored are not weights, and are ignored; so
//   are
//     ALiBi's slopes, if they are those that this program computes with;
//   - a tied output matrix may be stored a second time, if it has the same elements;
//   - embedding and output matrix may have more rows than vocab_size (padding), which are left out.
//
// Any thread may read.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "src/interchange/hf_config.h"
#include "src/interchange/hf_files.h"
#include "src/nn/model_tensors.h"

namespace trireme {

class HfModel {
 public:
  // source: a folder, or one safetensors file with config.json beside it. Throws NotFound or
  // DataError that names the file, the field or the tensor.
  explicit HfModel(const std::filesystem::path& source);

  const HfConfig& config() const { return config_; }
  const std::filesystem::path& folder() const { return folder_; }
  // Returns the model's tensors under this program's names, sorted bytewise by name.
  const std::vector<ModelTensor>& tensors() const { return tensors_; }
  // Returns the type of all tensors, or f32 if they differ.
  DType dtype() const { return dtype_; }
  std::int64_t file_bytes() const { return files_.bytes(); }
  // Returns the label that its files carry (HfFiles::label()).
  std::optional<Label> label(const std::vector<std::string>& order) const {
    return files_.label(order);
  }
  // Returns the files that were read.
  std::vector<std::filesystem::path> paths() const;
  // Returns the number of rows that were stored beyond the vocabulary and are left out.
  std::int64_t padding_rows() const { return padding_rows_; }

  // Reads row-major elements [first, first + count) of a tensor of tensors(). Throws DataError if
  // one of them is not a finite number.
  void read(const std::string& name, std::int64_t first, std::int64_t count, float* to) const;
  // Returns all elements of a tensor.
  std::vector<float> read(const std::string& name) const;

 private:
  void check_count();
  void find_tensor(const ModelTensor& tensor);
  void check_shape(const ModelTensor& tensor, const std::string& stored);
  void check_tied(std::string_view embedding);
  void check_rest() const;
  void check_slopes(const std::string& stored) const;
  void find_dtype();
  const ModelTensor& tensor_of(const std::string& name) const;
  std::string where(const std::string& stored) const;

  std::filesystem::path folder_;
  HfConfig config_;
  HfFiles files_;
  std::vector<ModelTensor> tensors_;
  std::map<std::string, std::string> stored_;  // names in the files, by this program's
  DType dtype_ = DType::f32;
  std::int64_t padding_rows_ = 0;
};

}  // namespace trireme
