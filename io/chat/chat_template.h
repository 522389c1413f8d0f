// ChatTemplate turns conversations into text, as the chat template of a tokenizer says: the Jinja
// template with which Hugging Face publishes a tokenizer (docs/tokenizers.md). Immutable; usable
// from any thread.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "io/chat/jinja_run.h"
#include "io/chat/jinja_tree.h"

namespace trireme {

// RenderedChat is a conversation as a text.
struct RenderedChat {
  std::string text;
  // What the assistant says, with what ends it, as [begin, end) in bytes; ascending.
  std::vector<std::pair<std::size_t, std::size_t>> answers;
};

class ChatTemplate {
 public:
  // source: the template. tokens: what its variables bos_token, eos_token and the like are. Throws
  // DataError for what is not supported.
  explicit ChatTemplate(std::string source, std::map<std::string, std::string> tokens = {});
  // Reads the template of the tokenizer in a folder, or beside a file: chat_template.jinja, or
  // `chat_template` of tokenizer_config.json, of several the one named "default". file: if not
  // empty, the template itself. Returns nothing if there is none. An empty `tokenizer` has no
  // files.
  static std::optional<ChatTemplate> open(const std::filesystem::path& tokenizer,
                                          const std::filesystem::path& file = {});

  const std::string& source() const { return source_; }
  const std::map<std::string, std::string>& tokens() const { return tokens_; }
  // Returns the SHA-256 of the template and its tokens.
  std::string digest() const;

  // messages: a list of {"role": ..., "content": ...}. tools: a list, or null. asks: the text ends
  // where the assistant is to begin (add_generation_prompt). Throws DataError.
  std::string render(const nlohmann::ordered_json& messages, const nlohmann::ordered_json& tools,
                     bool asks) const;
  // Renders a whole conversation and finds the answers: what {% generation %} marks, or else what
  // each message of the assistant adds to the text that asks for it. Throws DataError if the
  // template changes earlier text when a message is added, if there is no answer, or if there are
  // so many that rendering the text in front of each takes too long.
  RenderedChat render_answers(const nlohmann::ordered_json& messages,
                              const nlohmann::ordered_json& tools) const;
  // Does the same with a line of JSON: an object with the list in `field`, and perhaps `tools`.
  RenderedChat render_line(std::string_view object, const std::string& field) const;

 private:
  RenderedTemplate rendered(const JinjaValue& messages, const JinjaValue& tools, bool asks) const;

  std::string source_;
  std::map<std::string, std::string> tokens_;
  std::shared_ptr<const JinjaBody> body_;
};

// Returns the template in a tokenizer_config.json, of several the one named "default"; "" if there
// is none. Throws DataError.
std::string chat_template_of(const nlohmann::json& config);

// Returns the messages of a JSON text, which is a list, or an object that has it in `field`; then
// `tools` is its list of tools, or null. Throws DataError.
nlohmann::ordered_json messages_of(std::string_view text, const std::string& field,
                                   nlohmann::ordered_json& tools);

}  // namespace trireme
