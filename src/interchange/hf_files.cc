#include "src/interchange/hf_files.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <nlohmann/json.hpp>

#include "io/checkpoint/exported_metadata.h"
#include "io/checkpoint/safetensors.h"
#include "io/checkpoint/shard_plan.h"
#include "src/base/data_error_in.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"
#include "src/interchange/elements.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kSingleName = "model.safetensors";
constexpr std::string_view kListName = "model.safetensors.index.json";
constexpr std::int64_t kMostListBytes = 256 << 20;

// Files of pickled objects run code when they are read.
[[noreturn]] void refuse_folder(const fs::path& folder) {
  if (fs::exists(folder / "pytorch_model.bin") ||
      fs::exists(folder / "pytorch_model.bin.index.json")) {
    throw DataError(fmt::format(
        "{} has its weights in pytorch_model.bin only, a format that can run code: save the model "
        "with safe_serialization=True, which writes {}",
        folder.string(), kSingleName));
  }
  throw NotFound(fmt::format("{} has neither {} nor {}: was it downloaded completely?",
                             folder.string(), kSingleName, kListName));
}

// The names of files are text of a foreign file, and must not lead out of the folder.
void check_file_name(const std::string& name) {
  if (name.find('/') != std::string::npos || !name.ends_with(".safetensors")) {
    throw DataError(fmt::format("'{}' is not the name of a safetensors file", printable(name)));
  }
}

}  // namespace

std::int64_t HfTensor::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) {
    n *= extent;
  }
  return n;
}

HfFiles::HfFiles(const fs::path& source) {
  if (!fs::exists(source)) {
    throw NotFound(fmt::format("{} does not exist", source.string()));
  }
  if (!fs::is_directory(source)) {
    open_single(source);
  } else if (fs::exists(source / kListName)) {
    open_listed(source / kListName);
  } else if (fs::exists(source / kSingleName)) {
    open_single(source / kSingleName);
  } else {
    refuse_folder(source);
  }
}

void HfFiles::open_single(const fs::path& path) { add_file(path); }

void HfFiles::open_listed(const fs::path& list) {
  list_ = list;
  std::map<std::string, std::string> place;  // file of each tensor
  std::map<std::string, std::size_t> files;  // number of each file
  try {
    const nlohmann::json object = parse_json(read_file(list, kMostListBytes));
    const nlohmann::json& map = object_field(object, "weight_map");
    for (const auto& [tensor, file] : map.items()) {
      place[tensor] = text_field(map, tensor.c_str());
      check_file_name(place[tensor]);
      files.try_emplace(place[tensor], 0);
    }
  } catch (const DataError& error) {
    throw data_error_in(list.string(), error);
  }
  for (auto& [name, number] : files) {
    const fs::path path = list.parent_path() / name;
    std::error_code ignored;  // the name may be too long
    if (!fs::exists(path, ignored)) {
      throw DataError(fmt::format("{} lists {}, which is missing: was it downloaded completely?",
                                  list.string(), printable(path.string())));
    }
    number = files_.size();
    add_file(path);
  }
  for (const auto& [tensor, file] : place) {
    const HfTensor* const found = find(tensor);
    if (found == nullptr || found->file != files.at(file)) {
      throw DataError(fmt::format("{} lists the tensor {} in {}, but it is not there",
                                  list.string(), printable(tensor), printable(file)));
    }
  }
  for (const auto& [tensor, where] : tensors_) {
    if (!place.contains(tensor)) {
      throw DataError(fmt::format("{} does not list the tensor {} of {}", list.string(),
                                  printable(tensor), files_[where.file].path().string()));
    }
  }
}

void HfFiles::add_file(const fs::path& path) {
  File file = File::open_to_read(path);
  try {
    const std::int64_t bytes = file.size();
    std::string head(static_cast<std::size_t>(std::min<std::int64_t>(8, bytes)), '\0');
    file.read_exactly_at(0, head.data(), std::ssize(head));
    head.resize(static_cast<std::size_t>(safetensors_head_bytes(head, bytes)));
    file.read_exactly_at(0, head.data(), std::ssize(head));
    const SafetensorsHeader header = parse_safetensors_header(head, bytes);
    if (header.metadata.contains(kShardField)) {
      throw ConfigError(
          fmt::format("{} is a shard of a checkpoint, whose label is in the checkpoint's manifest "
                      "and counts for it: import what `trireme export` writes of the checkpoint",
                      path.string()));
    }
    if (const std::optional<Label> label = exported_label(header.metadata)) {
      labels_.push_back(*label);
    }
    for (const SafetensorsEntry& entry : header.entries) {
      const HfTensor tensor{files_.size(), entry.dtype, entry.shape,
                            header.data_offset + entry.begin};
      if (!tensors_.try_emplace(entry.name, tensor).second) {
        throw DataError(fmt::format("another file has a tensor {}, too", printable(entry.name)));
      }
    }
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {} (if it was not downloaded completely, download it again)",
                                path.string(), printable(error.what())));
  }
  files_.push_back(std::move(file));
}

const HfTensor* HfFiles::find(const std::string& name) const {
  const auto at = tensors_.find(name);
  return at == tensors_.end() ? nullptr : &at->second;
}

std::vector<fs::path> HfFiles::paths() const {
  std::vector<fs::path> paths;
  if (!list_.empty()) {
    paths.push_back(list_);
  }
  for (const File& file : files_) {
    paths.push_back(file.path());
  }
  return paths;
}

std::int64_t HfFiles::bytes() const {
  std::int64_t sum = 0;
  for (const File& file : files_) {
    sum += file.size();
  }
  return sum;
}

std::optional<Label> HfFiles::label(const std::vector<std::string>& order) const {
  std::optional<Label> joined;
  for (const Label& label : labels_) {
    joined = join(joined, label, order);
  }
  return joined;
}

void HfFiles::read(const std::string& name, std::int64_t first, std::int64_t count,
                   float* to) const {
  const HfTensor& tensor = tensors_.at(name);
  const File& file = files_[tensor.file];
  const std::int64_t size = size_of(tensor.dtype);
  const std::int64_t offset = tensor.offset + first * size;
  if (tensor.dtype == DType::f32) {
    file.read_exactly_at(offset, to, count * size);
  } else {
    const auto raw =
        std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(count * size));
    file.read_exactly_at(offset, raw.get(), count * size);
    try {
      widen(raw.get(), tensor.dtype, count, to);
    } catch (const DataError& error) {
      throw data_error_in(fmt::format("{}: tensor {}", file.path().string(), name), error);
    }
  }
  if (const std::int64_t at = first_not_finite(to, count); at < count) {
    if (tensor.dtype == DType::f64) {
      double value = 0;
      file.read_exactly_at(offset + at * size, &value, size);
      if (std::isfinite(value)) {
        throw DataError(fmt::format("{}: element {} of tensor {} is {}, which fp32 cannot hold",
                                    file.path().string(), first + at, printable(name), value));
      }
    }
    throw DataError(fmt::format("{}: element {} of tensor {} is {}: weights must be finite numbers",
                                file.path().string(), first + at, printable(name), to[at]));
  }
}

}  // namespace trireme
