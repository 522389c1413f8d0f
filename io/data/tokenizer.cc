#include "io/data/tokenizer.h"

#include <algorithm>

#include "src/base/digest.h"
#include "src/base/error.h"

namespace trireme {
namespace {

class ByteTokenizer final : public Tokenizer {
 public:
  std::string name() const override { return "bytes"; }
  std::string digest() const override {
    return sha256_hex("trireme tokenizer: bytes, version 1: id = byte; 256 ends a document");
  }
  std::int64_t vocab() const override { return 257; }
  std::int32_t end_of_document() const override { return 256; }
  double bytes_per_token() const override { return 1; }

  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override {
    const std::size_t old = ids.size();
    ids.resize(old + text.size());
    std::transform(text.begin(), text.end(), ids.begin() + static_cast<std::ptrdiff_t>(old),
                   [](char c) { return static_cast<unsigned char>(c); });
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    text.reserve(ids.size());
    for (const std::int32_t id : ids) {
      if (id < 0 || id > end_of_document()) {
        throw DataError(
            fmt::format("token {} is not one of the 257 ids of the byte tokenizer", id));
      }
      if (id != end_of_document()) {
        text.push_back(static_cast<char>(id));
      }
    }
    return text;
  }
};

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(std::string_view name) {
  if (name == "bytes") {
    return std::make_unique<ByteTokenizer>();
  }
  throw ConfigError(fmt::format("unknown tokenizer '{}': the only one available is 'bytes'", name));
}

std::string foreign_tokenizer_digest(std::string_view name, std::int64_t vocab) {
  if (name != "bytes") {
    return sha256_hex(fmt::format("foreign tokenizer {} {}", name, vocab));
  }
  const std::unique_ptr<Tokenizer> own = make_tokenizer(name);
  if (vocab > own->vocab()) {
    throw ConfigError(
        fmt::format("the tokenizer '{}' has {} ids, but the tokens have a vocabulary of {}: give "
                    "the name of the tokenizer that made them. 'bytes' means that ids 0 to 255 are "
                    "bytes and 256 ends a document",
                    name, own->vocab(), vocab));
  }
  return own->digest();
}

}  // namespace trireme
