// Tokenizer: text to token ids and back. Stateless after construction: any thread, any rank.
// A dataset records name and digest of the one that made it, so that a model is never fed with ids
// of another.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::string name() const = 0;
  // SHA-256 of all that decides which ids a text gets.
  virtual std::string digest() const = 0;
  // Ids lie in [0, vocab()).
  virtual std::int64_t vocab() const = 0;
  virtual std::int32_t end_of_document() const = 0;
  // About how many bytes of text make one token: for planning only.
  virtual double bytes_per_token() const = 0;
  // Appends the ids of `text` to `ids`.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& ids) const = 0;
  // ids: [any]. The end of a document decodes to nothing; an id outside the vocabulary is a
  // DataError.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
};

// "bytes": ids 0 to 255 are the bytes themselves, 256 ends a document. ConfigError for other names.
std::unique_ptr<Tokenizer> make_tokenizer(std::string_view name);

// The digest for tokens that another program made: that of this program's tokenizer of the name,
// or else one of name and vocabulary. ConfigError if the vocabulary is larger than that
// tokenizer's.
std::string foreign_tokenizer_digest(std::string_view name, std::int64_t vocab);

}  // namespace trireme
