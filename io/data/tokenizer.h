// Tokenizer converts text to token ids and back. It is stateless after construction and usable from
// any thread. A dataset records the name and digest of its tokenizer, so that a model never gets
// ids of another one.
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
  // Returns the SHA-256 of everything that determines the ids of a text.
  virtual std::string digest() const = 0;
  // Ids lie in [0, vocab()).
  virtual std::int64_t vocab() const = 0;
  virtual std::int32_t end_of_document() const = 0;
  // Returns whether the id is that of a token which is no text, such as the end of a message.
  virtual bool is_special(std::int32_t id) const { return id == end_of_document(); }
  // Returns the tokens that are put before a text by those who want them, such as one that begins
  // it; most tokenizers have none.
  virtual std::vector<std::int32_t> before_text() const { return {}; }
  // Returns roughly how many bytes of text make one token. Used for planning only.
  virtual double bytes_per_token() const = 0;
  // Appends the ids of `text` to `ids`.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& ids) const = 0;
  // ids: [any]. The end-of-document id decodes to nothing. Throws DataError for an id outside the
  // vocabulary.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  // Returns how many of the ids, counted from the first, have a text that no id after them can
  // change. A character that is not complete does not count as a change.
  virtual std::size_t settled(std::span<const std::int32_t> ids) const { return ids.size(); }
};

// Knows "bytes" only: ids 0 to 255 are the bytes themselves, 256 ends a document. Throws
// ConfigError for other names.
std::unique_ptr<Tokenizer> make_tokenizer(std::string_view name);

// Returns the digest for tokens that another program made: that of this program's tokenizer of the
// same name, or one of name and vocabulary if there is no such tokenizer. Throws ConfigError if
// `vocab` exceeds that tokenizer's.
std::string foreign_tokenizer_digest(std::string_view name, std::int64_t vocab);

}  // namespace trireme
