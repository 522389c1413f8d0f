#include "src/app/model/tokenizer_choice.h"

#include <algorithm>
#include <optional>

#include <fmt/ranges.h>

#include "io/tokens/tokenizer_files.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/train/start/tokenizer_identity.h"

namespace trireme {
namespace {

TokenizerIdentity identity_of(const Tokenizer& tokenizer) {
  return {tokenizer.name(), tokenizer.vocab(), tokenizer.digest()};
}

// Returns the nearest of the folders that the checkpoint knows whose files define the tokenizer of
// its training; nothing if there is none.
std::optional<std::filesystem::path> folder_with_files(const LoadedModel& loaded,
                                                       const std::string& end_token) {
  const auto found = std::ranges::find_if(loaded.text.folders, [&](const auto& folder) {
    return holds_tokenizer(folder) &&
           (is_unnamed(loaded.tokenizer) ||
            same_tokenizer(loaded.tokenizer,
                           identity_of(*open_tokenizer(folder.string(), end_token))));
  });
  return found == loaded.text.folders.end() ? std::nullopt : std::optional(*found);
}

// Returns the tokenizer of a model: of an imported one, which does not name it, that whose files
// its checkpoint holds, or any if it holds none.
TokenizerIdentity expected_tokenizer(const LoadedModel& loaded, const std::string& end_token,
                                     const TokenizerIdentity& named) {
  if (!is_unnamed(loaded.tokenizer)) {
    return loaded.tokenizer;
  }
  const auto folder = folder_with_files(loaded, end_token);
  return folder ? identity_of(*open_tokenizer(folder->string(), end_token)) : named;
}

// Says what to do if no files of the model's tokenizer are found.
std::string way_out(const LoadedModel& loaded, bool has_ids) {
  std::vector<std::string> folders;
  for (const std::filesystem::path& folder : loaded.text.folders) {
    folders.push_back(printable(folder.string()));
  }
  return fmt::format("no files that define it are in {}; name them with --tokenizer PATH{}",
                     fmt::join(folders, " or "),
                     has_ids ? ", or read and print token ids with --ids" : "");
}

}  // namespace

void TokenizerChoice::add_to(CommandLine& command) {
  command
      .add_option(
          "--tokenizer", path,
          "The files of the model's tokenizer: tokenizer.json, or a folder with it (default: "
          "those beside the imported model or the dataset, or the program's own tokenizer)")
      .type_name("PATH");
  command
      .add_option("--end-of-document", end_token,
                  "The token of --tokenizer that ends a document (default: the one that its files "
                  "name)")
      .type_name("TOKEN");
}

std::string TokenizerChoice::files_for(const LoadedModel& loaded) const {
  if (!path.empty() || has_tokenizer(loaded.tokenizer)) {
    return path;
  }
  const auto folder = folder_with_files(loaded, end_token);
  return folder ? folder->string() : "";
}

std::unique_ptr<Tokenizer> TokenizerChoice::open(const LoadedModel& loaded, bool ids) const {
  if (ids && !path.empty()) {
    throw ConfigError("--tokenizer and --ids are both given: choose one of them");
  }
  const std::string files = ids ? "" : files_for(loaded);
  if (files.empty() && !ids && !end_token.empty()) {
    if (const auto folder = folder_with_files(loaded, "")) {
      const auto own = open_tokenizer_files(*folder);
      throw ConfigError(fmt::format(
          "--end-of-document {}: the data of this model was packed with {} as the end of a "
          "document: leave the option out",
          printable(end_token), printable(own->token(own->end_of_document()))));
    }
  }
  if (files.empty()) {
    return tokenizer_for(loaded.tokenizer, loaded.config.vocab, ids, way_out(loaded, has_ids));
  }
  auto tokenizer = open_tokenizer(files, end_token);
  const TokenizerIdentity own = identity_of(*tokenizer);
  const TokenizerIdentity expected = expected_tokenizer(loaded, end_token, own);
  if (own.vocab > loaded.config.vocab) {
    throw ConfigError(fmt::format(
        "the tokenizer in {} has {} ids, but the model only {}: name the model's own with "
        "--tokenizer",
        printable(files), own.vocab, loaded.config.vocab));
  }
  if (!same_tokenizer(expected, own)) {
    throw ConfigError(
        fmt::format("--tokenizer {} is {}, but the model was trained on tokens of {}: give the "
                    "files of that tokenizer, and the same --end-of-document as when packing",
                    printable(files), describe(own), describe(expected)));
  }
  return tokenizer;
}

}  // namespace trireme
