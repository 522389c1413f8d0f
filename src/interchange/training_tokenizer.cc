#include "src/interchange/training_tokenizer.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "io/data/tokenizer.h"
#include "io/tokens/tokenizer_files.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/interchange/carried_files.h"
#include "src/train/saving/first_weights.h"
#include "src/train/start/tokenizer_identity.h"
#include "src/train/text/step_tokenizer.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

// Finds the files of one model, of which a step holds the weights or what was trained beside them.
class TokenizerSearch {
 public:
  // base: as for changed_tokenizer().
  TokenizerSearch(const StepFolder& step, const StepFolder* base)
      : step_(step), origin_(base == nullptr ? step : *base) {
    tokenizer_ = tokenizer_from_extra(extra_of(step));
    if (tokenizer_.digest.empty()) {
      tokenizer_ = tokenizer_from_extra(extra_of(origin_));
    }
    found_.is_changed = changed_tokenizer(step, base);
    add_model(step);
    if (base != nullptr) {
      add_model(*base);
    }
    const bool knows_digest = !tokenizer_.digest.empty();
    found_.is_imported = !found_.is_changed && (!knows_digest || first_ || has_imported());
  }

  ModelTokenizer run() && {
    const bool is_compared = !tokenizer_.digest.empty() && !is_of_other_program(tokenizer_);
    if (has_tokenizer(tokenizer_) && !tokenizer_.digest.empty()) {
      found_.is_bytes = true;
      found_.end_of_document = make_tokenizer(tokenizer_.name)->end_of_document();
      take_settings();
    } else if (is_compared) {
      find_by_digest();
    } else {
      find_any();
    }
    return std::move(found_);
  }

 private:
  static const nlohmann::json& extra_of(const StepFolder& step) {
    return *step.manifest->meta.extra;
  }
  bool has_imported() const { return extra_of(origin_).contains("imported"); }

  void add_model(const StepFolder& step) {
    models_.push_back(step.path);
    if (const std::optional<FirstWeights> first = find_first_weights(step)) {
      first_ = first;
      if (first->is_there) {
        models_.push_back(first->folder);
      }
    }
  }

  // Without a digest to compare with, takes what lies nearest.
  void find_any() {
    const auto nearest = std::ranges::find_if(
        models_, [](const fs::path& folder) { return !carried_files_in(folder).empty(); });
    if (nearest != models_.end()) {
      found_.folder = *nearest;
    } else if (first_ && !first_->is_there) {
      found_.warning = fmt::format(
          "the files of the tokenizer are missing, because {}: copy them from the model's own "
          "files",
          why_first_is_gone());
    } else if (!first_ && !tokenizer_.digest.empty()) {
      (void)find_in_dataset();
    }
  }

  void find_by_digest() {
    const auto own = std::ranges::find_if(models_, [&](const fs::path& folder) {
      return tokenizer_digest_in(folder) == tokenizer_.digest;
    });
    if (own != models_.end()) {
      found_.folder = *own;
      read_end();
    } else if (find_in_dataset()) {
      take_settings();
    }
  }

  // Sets the folder to that of the run's dataset, if it still has the files, else the warning.
  bool find_in_dataset() {
    std::string fault =
        "the checkpoint does not say where they are, since an earlier version wrote it";
    for (const StepFolder* step : {&step_, &origin_}) {
      if (found_.folder.empty() && extra_of(*step).contains(kTokenizerFolderField)) {
        const fs::path folder = text_field(extra_of(*step), kTokenizerFolderField);
        fault = fault_of_files(folder);
        found_.folder = fault.empty() ? folder : "";
      }
    }
    if (found_.folder.empty()) {
      found_.warning = fmt::format(
          "the files of the tokenizer {} are missing, because {}: copy them from the dataset's "
          "folder `tokenizer`, or from where the dataset had it{}",
          describe(tokenizer_), fault,
          found_.is_changed ? ". Those of the model with which the run began are of another "
                              "tokenizer, and are left out"
                            : "");
      return false;
    }
    read_end();
    return true;
  }

  // Returns why the files in a folder cannot be used, or "".
  std::string fault_of_files(const fs::path& folder) const {
    if (!holds_tokenizer(folder)) {
      return fmt::format("{} has none", folder.string());
    }
    try {
      return open_tokenizer(folder.string())->digest() == tokenizer_.digest
                 ? ""
                 : fmt::format("{} is of another tokenizer by now", folder.string());
    } catch (const Error& error) {
      return error.what();
    }
  }

  void read_end() {
    const std::int32_t end = open_tokenizer_files(found_.folder)->end_of_document();
    if (end >= 0) {
      found_.end_of_document = end;
    }
  }

  // Beside the dataset's files, or "bytes", which has none, says what became of the first model's.
  void take_settings() {
    if (found_.is_changed || std::ranges::any_of(models_, holds_tokenizer)) {
      found_.note = fmt::format(
          "the tokenizer is {}, with whose tokens the model was trained last, and not that of the "
          "model with which the run began",
          describe(tokenizer_));
    }
    if (found_.is_changed) {
      return;
    }
    const auto settings = std::ranges::find_if(
        models_, [](const fs::path& folder) { return fs::exists(folder / kGenerationConfigName); });
    if (settings != models_.end()) {
      found_.settings = *settings;
    } else if (first_ && !first_->is_there) {
      found_.warning = fmt::format(
          "the files beside the model are missing, because {}: the tokenizer's are those of the "
          "dataset; copy {} and what else is wanted from the model's own files",
          why_first_is_gone(), kGenerationConfigName);
    }
  }

  std::string why_first_is_gone() const {
    return fmt::format(
        "{}, the imported model with which the run began, is gone or another checkpoint is there "
        "now",
        first_->folder.string());
  }

  const StepFolder& step_;
  const StepFolder& origin_;
  TokenizerIdentity tokenizer_;
  std::vector<fs::path> models_;       // that may hold its files, the nearest first
  std::optional<FirstWeights> first_;  // the imported model of the farthest step that names one
  ModelTokenizer found_;
};

}  // namespace

ModelTokenizer find_model_tokenizer(const CheckpointWeights& weights) {
  return TokenizerSearch(weights.step(), weights.base()).run();
}

}  // namespace trireme
