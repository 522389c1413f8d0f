#include "io/data/foreign_file.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "io/data/document_ends.h"
#include "io/data/megatron_index.h"
#include "io/data/npy_header.h"
#include "io/data/shard_check.h"
#include "io/h5/crash_guard.h"
#include "io/h5/h5_file.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::string_view kIndexEnd = ".idx";
constexpr std::string_view kTokensEnd = ".bin";
constexpr std::string_view kNpyEnd = ".npy";
constexpr std::string_view kNpyOffsetsEnd = ".offsets.npy";
constexpr std::string_view kMaskEnd = ".loss_mask.npy";  // of `data export`

std::string with_end(std::string_view path, std::string_view end, std::string_view other) {
  return std::string(path.substr(0, path.size() - end.size())) + std::string(other);
}

// Returns the mask of a file whose name has this end: NAME.loss_mask.npy, if it exists.
std::string mask_beside(std::string_view path, std::string_view end) {
  std::string mask = with_end(path, end, kMaskEnd);
  std::error_code unknown;
  return std::filesystem::exists(mask, unknown) ? mask : "";
}

class Hdf5Tokens final : public ForeignFile {
 public:
  Hdf5Tokens(const std::string& path, const ForeignNames& names)
      : path_(path),
        tokens_name_(names.tokens),
        offsets_name_(names.offsets.empty() ? "/doc_offsets" : names.offsets),
        guard_(path),
        file_(H5File::open_to_read(path)),
        tokens_(required(tokens_name_, "--tokens")),
        offsets_(names.offsets.empty() && !file_.has_link(offsets_name_)
                     ? std::nullopt
                     : std::optional(required(offsets_name_, "--offsets"))) {}

  ForeignArray& tokens() override { return tokens_; }
  ForeignArray* offsets() override { return offsets_ ? &*offsets_ : nullptr; }
  void check_documents() override {
    if (offsets_) {
      check_offsets(*offsets_, tokens_.size(), fmt::format("{}: {}", path_, offsets_name_));
    }
  }
  std::string loss_mask() const override {
    const std::string group = tokens_name_.substr(0, tokens_name_.rfind('/') + 1);
    for (const std::string& name : {group + kLossMaskName, std::string("/") + kLossMaskName}) {
      if (file_.has_link(name)) {
        return fmt::format("{}: {}", path_, name);
      }
    }
    return "";
  }
  std::string place_of(std::int64_t token) const override {
    return fmt::format("{}: {}[{}]", path_, tokens_name_, token);
  }

 private:
  H5Array required(const std::string& name, const char* option) const {
    std::optional<H5Integers> found = file_.integers(name);
    if (!found) {
      throw DataError(fmt::format(
          "{}: there is no HDF5 dataset {}: name another one with {} (`h5ls -r {}` lists them)",
          path_, name, option, path_));
    }
    return H5Array(std::move(*found));
  }

  std::string path_;
  std::string tokens_name_;
  std::string offsets_name_;
  CrashGuard guard_;
  H5File file_;
  H5Array tokens_;
  std::optional<H5Array> offsets_;
};

class MegatronTokens final : public ForeignFile {
 public:
  MegatronTokens(const std::string& index, const std::string& tokens)
      : idx_(File::open_to_read(index)),
        bin_(File::open_to_read(tokens)),
        index_(idx_, bin_.size()),
        tokens_(bin_, 0, index_.type(), index_.tokens()) {}

  ForeignArray& tokens() override { return tokens_; }
  ForeignArray* offsets() override { return &index_; }
  void check_documents() override { index_.check_all(); }
  std::string loss_mask() const override { return mask_beside(idx_.path().string(), kIndexEnd); }
  std::string place_of(std::int64_t token) const override {
    return fmt::format("{}: token {}, at byte {},", bin_.path().string(), token,
                       token * index_.type().bytes);
  }

 private:
  File idx_;
  File bin_;
  MegatronIndex index_;
  PlainArray tokens_;
};

NpyHeader header_of(const File& file) {
  std::string head(static_cast<std::size_t>(kMostNpyHeader), '\0');
  head.resize(static_cast<std::size_t>(file.read_at(0, head.data(), kMostNpyHeader)));
  return parse_npy_header(head, file.size(), file.path().string());
}

// One dimension is a row of tokens, with its documents in another file if there is one; in two
// dimensions, each row is a document.
class NpyTokens final : public ForeignFile {
 public:
  NpyTokens(const std::string& tokens, const std::optional<InputFile>& offsets)
      : file_(File::open_to_read(tokens)), header_(header_of(file_)) {
    const std::vector<std::int64_t>& shape = header_.shape;
    if (shape.size() != 1 && shape.size() != 2) {
      throw DataError(
          fmt::format("{}: the array has {} dimensions: expected one, of tokens, or two, of "
                      "documents and their tokens",
                      tokens, shape.size()));
    }
    PlainArray elements(file_, header_.data_offset, header_.type, header_.elements());
    if (shape.size() == 2 && header_.is_column_major) {
      tokens_ = std::make_unique<ColumnMajorMatrix>(std::move(elements), shape[0], shape[1]);
    } else {
      tokens_ = std::make_unique<PlainArray>(std::move(elements));
    }
    if (shape.size() == 2 && header_.elements() > 0) {
      offsets_ = std::make_unique<EqualEnds>(shape[1], shape[0] + 1);
    } else if (shape.size() == 1 && offsets) {
      open_offsets(offsets->path);
    }
  }

  ForeignArray& tokens() override { return *tokens_; }
  ForeignArray* offsets() override { return offsets_.get(); }
  void check_documents() override {
    if (offsets_file_) {
      check_offsets(*offsets_, tokens_->size(), offsets_file_->path().string());
    }
  }
  std::string loss_mask() const override {
    const std::string path = file_.path().string();
    return path.ends_with(kMaskEnd) ? path : mask_beside(path, kNpyEnd);
  }
  std::string place_of(std::int64_t token) const override {
    return fmt::format("{}: element {}", file_.path().string(), token);
  }

 private:
  void open_offsets(const std::string& path) {
    offsets_file_ = File::open_to_read(path);
    const NpyHeader header = header_of(*offsets_file_);
    if (header.shape.size() != 1) {
      throw DataError(fmt::format("{}: the array has {} dimensions: expected one, of offsets", path,
                                  header.shape.size()));
    }
    offsets_ = std::make_unique<PlainArray>(*offsets_file_, header.data_offset, header.type,
                                            header.elements());
  }

  File file_;
  NpyHeader header_;
  std::optional<File> offsets_file_;
  std::unique_ptr<ForeignArray> tokens_;
  std::unique_ptr<ForeignArray> offsets_;
};

const InputFile* find_path(const std::vector<InputFile>& files, const std::string& path) {
  const auto found = std::ranges::lower_bound(files, path, {}, &InputFile::path);
  return found != files.end() && found->path == path ? &*found : nullptr;
}

}  // namespace

bool is_hdf5(std::string_view path) { return path.ends_with(".h5") || path.ends_with(".hdf5"); }

std::unique_ptr<ForeignFile> open_foreign_file(const ForeignInput& input,
                                               const ForeignNames& names) {
  const std::string& path = input.file.path;
  if (path.ends_with(kIndexEnd)) {
    return std::make_unique<MegatronTokens>(path, input.beside.value().path);
  }
  if (path.ends_with(kNpyEnd)) {
    return std::make_unique<NpyTokens>(path, input.beside);
  }
  return std::make_unique<Hdf5Tokens>(path, names);
}

std::vector<std::string> foreign_arguments(const std::vector<std::string>& arguments) {
  namespace fs = std::filesystem;
  std::vector<std::string> listed;
  const auto add_if_there = [&](const std::string& path) {
    std::error_code unknown;
    if (fs::exists(path, unknown)) {
      listed.push_back(path);
    }
  };
  for (const std::string& argument : arguments) {
    std::error_code unknown;
    if (!fs::exists(argument, unknown) && fs::exists(argument + std::string(kIndexEnd), unknown)) {
      listed.push_back(argument + std::string(kIndexEnd));
      add_if_there(argument + std::string(kTokensEnd));
      continue;
    }
    listed.push_back(argument);
    if (argument.ends_with(kIndexEnd)) {
      add_if_there(with_end(argument, kIndexEnd, kTokensEnd));
    } else if (argument.ends_with(kTokensEnd)) {
      add_if_there(with_end(argument, kTokensEnd, kIndexEnd));
    } else if (argument.ends_with(kNpyEnd)) {
      add_if_there(with_end(argument, kNpyEnd, kNpyOffsetsEnd));
    }
  }
  return listed;
}

std::vector<std::string> places_of_label(const ForeignInput& input) {
  std::vector<std::string> places = {input.file.path,
                                     std::filesystem::canonical(input.file.path).string()};
  if (input.beside) {
    const std::string beside = std::filesystem::canonical(input.beside->path).string();
    for (const auto& [end, other] : {std::pair(kTokensEnd, kIndexEnd), {kNpyOffsetsEnd, kNpyEnd}}) {
      if (beside.ends_with(end)) {
        places.push_back(with_end(beside, end, other));
      }
    }
  }
  return places;
}

std::vector<ForeignInput> foreign_inputs(const std::vector<InputFile>& files) {
  std::vector<ForeignInput> inputs;
  for (const InputFile& file : files) {
    const std::string& path = file.path;
    const bool is_index = path.ends_with(kIndexEnd);
    const bool is_npy = path.ends_with(kNpyEnd) && !path.ends_with(kNpyOffsetsEnd);
    if (!is_index && !is_npy && !is_hdf5(path)) {
      continue;
    }
    ForeignInput input{file, std::nullopt};
    if (is_index || is_npy) {
      const std::string beside = is_index ? with_end(path, kIndexEnd, kTokensEnd)
                                          : with_end(path, kNpyEnd, kNpyOffsetsEnd);
      const InputFile* const found = find_path(files, beside);
      if (found != nullptr) {
        input.beside = *found;
      } else if (is_index) {
        throw DataError(
            fmt::format("{}: there is no file {} with the tokens of this index", path, beside));
      }
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

}  // namespace trireme
