#include "src/interchange/tokenizer_fault.h"

#include "io/tokens/tokenizer_files.h"
#include "src/base/error.h"

namespace trireme {

std::string without_folder(std::string text, const std::filesystem::path& folder) {
  const std::string prefix = folder.string() + "/";
  for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
    text.erase(at, prefix.size());
  }
  return text;
}

std::string tokenizer_fault(const std::filesystem::path& folder, std::int64_t rows) {
  if (!holds_tokenizer(folder)) {
    return "";
  }
  try {
    const std::unique_ptr<BpeTokenizer> tokenizer = open_tokenizer_files(folder);
    return tokenizer->vocab() <= rows
               ? ""
               : fmt::format("it has {} ids, but the model only {}", tokenizer->vocab(), rows);
  } catch (const Error& error) {
    return without_folder(error.what(), folder);
  }
}

}  // namespace trireme
