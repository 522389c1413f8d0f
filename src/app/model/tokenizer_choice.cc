#include "src/app/model/tokenizer_choice.h"

#include "io/tokens/tokenizer_files.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/train/start/tokenizer_identity.h"

namespace trireme {
namespace {

// Returns the tokenizer of a model: of an imported one, that whose files its checkpoint holds, or
// any if it holds none.
TokenizerIdentity expected_tokenizer(const LoadedModel& loaded,
                                     const std::filesystem::path& checkpoint,
                                     const std::string& end_token, const TokenizerIdentity& named) {
  if (loaded.tokenizer.name != "imported" || !loaded.tokenizer.digest.empty()) {
    return loaded.tokenizer;
  }
  if (!std::filesystem::exists(checkpoint / "tokenizer.json")) {
    return named;
  }
  const auto held = open_tokenizer(checkpoint.string(), end_token);
  return {held->name(), held->vocab(), held->digest()};
}

}  // namespace

void TokenizerChoice::add_to(CommandLine& command) {
  command
      .add_option("--tokenizer", path,
                  "The files of the model's tokenizer: tokenizer.json, or a folder with it")
      .type_name("PATH");
  command
      .add_option("--end-of-document", end_token,
                  "The token of --tokenizer that ends a document (default: the one that its files "
                  "name)")
      .type_name("TOKEN");
}

std::unique_ptr<Tokenizer> TokenizerChoice::open(const LoadedModel& loaded, bool ids) const {
  if (path.empty()) {
    return tokenizer_for(loaded.tokenizer, loaded.config.vocab, ids);
  }
  if (ids) {
    throw ConfigError("--tokenizer and --ids are both given: choose one of them");
  }
  auto tokenizer = open_tokenizer(path, end_token);
  const TokenizerIdentity own{tokenizer->name(), tokenizer->vocab(), tokenizer->digest()};
  const TokenizerIdentity expected = expected_tokenizer(loaded, checkpoint, end_token, own);
  if (!same_tokenizer(expected, own) || own.vocab > loaded.config.vocab) {
    throw ConfigError(
        fmt::format("--tokenizer {} is {}, but the model was trained on tokens of {}: give the "
                    "files of that tokenizer, and the same --end-of-document as when packing",
                    printable(path), describe(own), describe(expected)));
  }
  return tokenizer;
}

}  // namespace trireme
