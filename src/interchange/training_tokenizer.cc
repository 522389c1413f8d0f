#include "src/interchange/training_tokenizer.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "io/data/tokenizer.h"
#include "io/tokens/tokenizer_files.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"
#include "src/train/start/tokenizer_identity.h"

namespace trireme {
namespace {

// Sets folder and end_of_document. Returns why the files cannot be used, or "".
std::string fault_of_files(const std::string& folder, const TokenizerIdentity& wanted,
                           TrainingTokenizer& found) {
  if (!holds_tokenizer(folder)) {
    return fmt::format("{} has none", folder);
  }
  try {
    const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(folder);
    if (tokenizer->digest() != wanted.digest) {
      return fmt::format("{} is of another tokenizer by now", folder);
    }
    found.folder = folder;
    found.end_of_document = tokenizer->end_of_document();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

std::optional<TrainingTokenizer> find_training_tokenizer(const StepFolder& step) {
  const nlohmann::json& extra = *step.manifest->meta.extra;
  const TokenizerIdentity tokenizer = tokenizer_from_extra(extra);
  if (tokenizer.digest.empty()) {
    return std::nullopt;
  }
  TrainingTokenizer found;
  if (has_tokenizer(tokenizer)) {
    found.end_of_document = make_tokenizer(tokenizer.name)->end_of_document();
    return found;
  }
  const std::string fault =
      extra.contains(kTokenizerFolderField)
          ? fault_of_files(text_field(extra, kTokenizerFolderField), tokenizer, found)
          : "the checkpoint does not say where they are, since an earlier version wrote it";
  if (!fault.empty()) {
    found.missing = fmt::format(
        "the files of the tokenizer {} are missing, because {}: copy them from the dataset's "
        "folder `tokenizer`, or from where the dataset had it",
        describe(tokenizer), fault);
  }
  return found;
}

}  // namespace trireme
