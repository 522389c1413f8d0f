#include "io/tokens/dataset_tokenizer.h"

#include "io/tokens/tokenizer_files.h"
#include "src/base/error.h"

namespace trireme {
namespace fs = std::filesystem;

std::unique_ptr<Tokenizer> open_tokenizer_of(const fs::path& folder,
                                             const DatasetManifest& manifest) {
  std::error_code unknown;
  std::unique_ptr<Tokenizer> tokenizer;
  if (manifest.tokenizer == "bytes") {
    tokenizer = open_tokenizer("bytes");
  } else if (fs::is_directory(folder / "tokenizer", unknown)) {
    tokenizer = open_tokenizer((folder / "tokenizer").string());
  } else {
    return nullptr;
  }
  if (tokenizer->digest() != manifest.tokenizer_digest) {
    throw DataError(fmt::format(
        "{}: the files in tokenizer/ are not those of the tokenizer that made the dataset",
        folder.string()));
  }
  return tokenizer;
}

}  // namespace trireme
