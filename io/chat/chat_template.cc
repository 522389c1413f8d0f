#include "io/chat/chat_template.h"

#include <nlohmann/json.hpp>

#include "io/chat/jinja_parser.h"
#include "io/chat/jinja_run.h"
#include "src/base/data_error_in.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::int64_t kMostBytes = std::int64_t{16} << 20;
constexpr std::int64_t kMostSpent = 4 * JinjaBudget::kMost;  // on the answers of a conversation
constexpr std::size_t kMostKeys = 4096;                      // of an object

template <class Read>
auto naming_file(const fs::path& file, Read read) {
  try {
    return read();
  } catch (const DataError& error) {
    throw data_error_in(file.string(), error);
  }
}

// Returns the text of a special token, which is text or an object with `content`.
std::optional<std::string> token_text(const nlohmann::json& token) {
  if (token.is_object() && token.contains("content") && token["content"].is_string()) {
    return token["content"].get<std::string>();
  }
  return token.is_string() ? std::optional(token.get<std::string>()) : std::nullopt;
}

// Throws DataError for an object with so many keys that ordered_json takes long to read it.
void check_keys(const nlohmann::json& value) {
  if (value.is_object() && value.size() > kMostKeys) {
    throw DataError(fmt::format("an object has {} keys, more than {}", value.size(), kMostKeys));
  }
  if (value.is_structured()) {
    for (const nlohmann::json& inner : value) {
      check_keys(inner);
    }
  }
}

// Checks the whole numbers of a conversation and its tools. An object's other fields are not read.
class WholeNumbers : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit WholeNumbers(const std::string& field) : field_(field) {}
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& digits) override {
    if (is_read_ && digits.find_first_of(".eE") == std::string::npos) {
      throw DataError(
          fmt::format("the number {} is larger than 64 bits hold: write it as a text", digits));
    }
    return true;
  }
  bool string(string_t& /*text*/) override { return true; }
  bool binary(binary_t& /*bytes*/) override { return true; }
  bool start_object(std::size_t /*size*/) override { return open(); }
  bool start_array(std::size_t /*size*/) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    is_read_ = depth_ == 1 ? name == field_ || name == "tools" : is_read_;
    return true;
  }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    return false;
  }

 private:
  bool open() {
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }

  const std::string& field_;
  int depth_ = 0;
  bool is_read_ = true;  // of a list of messages without an object around it
};

bool is_prefix(const std::string& prefix, const std::string& text) {
  return text.starts_with(prefix);
}

}  // namespace

std::string chat_template_of(const nlohmann::json& config) {
  if (!config.contains("chat_template") || config["chat_template"].is_null()) {
    return "";
  }
  const nlohmann::json& found = config["chat_template"];
  if (!found.is_array()) {
    return text_field(config, "chat_template");
  }
  for (const nlohmann::json& one : found) {
    if (text_field(one, "name") == "default") {
      return text_field(one, "template");
    }
  }
  throw DataError(
      "'chat_template' has several templates, but none that is named \"default\": give one as a "
      "file of its own");
}

ChatTemplate::ChatTemplate(std::string source, std::map<std::string, std::string> tokens)
    : source_(std::move(source)),
      tokens_(std::move(tokens)),
      body_(std::make_shared<const JinjaBody>(parse_jinja(source_))) {}

std::optional<ChatTemplate> ChatTemplate::open(const fs::path& tokenizer, const fs::path& file) {
  const fs::path folder = fs::is_directory(tokenizer) ? tokenizer : tokenizer.parent_path();
  fs::path named = folder / "tokenizer_config.json";
  std::string source;
  std::map<std::string, std::string> tokens;
  if (!tokenizer.empty() && fs::exists(named)) {
    naming_file(named, [&] {
      const nlohmann::json config = parse_json(read_file(named, kMostBytes));
      if (!config.is_object()) {
        throw DataError("it is not an object");
      }
      for (const char* name : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                               "cls_token", "mask_token"}) {
        if (const auto text = config.contains(name) ? token_text(config[name]) : std::nullopt) {
          tokens[name] = *text;
        }
      }
      source = file.empty() ? chat_template_of(config) : "";
    });
  }
  const fs::path beside = file.empty() ? folder / "chat_template.jinja" : file;
  if (!file.empty() || (!tokenizer.empty() && fs::exists(beside))) {
    named = beside;
    source = read_file(named, kMostBytes);
    if (!file.empty() && source.empty()) {
      throw DataError(
          fmt::format("{} is empty: it should be a chat template", printable(file.string())));
    }
  }
  if (source.empty()) {
    return std::nullopt;
  }
  return naming_file(named, [&] { return ChatTemplate(source, tokens); });
}

std::string ChatTemplate::digest() const {
  return sha256_hex(nlohmann::json({{"template", source_}, {"tokens", tokens_}})
                        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

RenderedTemplate ChatTemplate::rendered(const JinjaValue& messages, const JinjaValue& tools,
                                        bool asks) const {
  JinjaMapping variables = {{"messages", messages},
                            {"tools", tools},
                            {"documents", JinjaValue()},
                            {"add_generation_prompt", JinjaValue::of(asks)}};
  for (const auto& [name, text] : tokens_) {
    variables.emplace_back(name, JinjaValue::text(text));
  }
  return render_jinja(*body_, variables);
}

std::string ChatTemplate::render(const ordered_json& messages, const ordered_json& tools,
                                 bool asks) const {
  return rendered(JinjaValue::from_json(messages), JinjaValue::from_json(tools), asks).text;
}

RenderedChat ChatTemplate::render_answers(const ordered_json& messages,
                                          const ordered_json& tools) const {
  const JinjaValue all = JinjaValue::from_json(messages);
  const JinjaValue known_tools = JinjaValue::from_json(tools);
  RenderedTemplate found = rendered(all, known_tools, false);
  RenderedChat whole = {std::move(found.text), std::move(found.generated)};
  std::int64_t spent = 0;
  JinjaList before;
  const auto render_before = [&](bool asks) {
    RenderedTemplate made = rendered(JinjaValue::list(before), known_tools, asks);
    spent += made.spent;
    if (spent > kMostSpent) {
      throw DataError(
          "the conversation is too long to find each answer by rendering what precedes it: cut the "
          "conversation, or mark answers in the template with {% generation %}");
    }
    return std::move(made.text);
  };
  const bool is_marked = !whole.answers.empty();
  for (std::size_t i = 0; i < messages.size() && !is_marked; ++i) {
    const bool answers = messages[i].value("role", "") == "assistant";
    const std::string prompt = answers ? render_before(true) : "";
    before.push_back((*all.as_list())[i]);
    if (!answers) {
      continue;
    }
    const bool is_last = i + 1 == messages.size();
    const std::string said = is_last ? whole.text : render_before(false);
    if (!is_prefix(prompt, said) || !is_prefix(said, whole.text)) {
      throw DataError(fmt::format(
          "the template writes what precedes message {} in another way once it is there, so that "
          "the answer can't be told from it: mark answers in the template with {{% generation %}}",
          i + 1));
    }
    whole.answers.emplace_back(prompt.size(), said.size());
  }
  if (whole.answers.empty()) {
    throw DataError("no message is of the role \"assistant\", so that there is no answer to learn");
  }
  return whole;
}

RenderedChat ChatTemplate::render_line(std::string_view object, const std::string& field) const {
  ordered_json tools;
  const ordered_json messages = messages_of(object, field, tools);
  return render_answers(messages, tools);
}

ordered_json messages_of(std::string_view text, const std::string& field, ordered_json& tools) {
  // Refuse what parse() would accept: depth, keys that occur twice, and whole numbers as floats.
  check_keys(parse_json(text));
  WholeNumbers numbers(field);
  nlohmann::json::sax_parse(text, &numbers);
  const ordered_json all = ordered_json::parse(text);
  tools = all.is_object() && all.contains("tools") ? all["tools"] : ordered_json();
  if (!tools.is_null() && !tools.is_array()) {
    throw DataError("'tools' is not a list");
  }
  if (all.is_object() && !all.contains(field)) {
    throw DataError(fmt::format(
        "there is no field '{}' with a list of messages: name the field with --field", field));
  }
  ordered_json messages = all.is_object() ? all[field] : all;
  if (!messages.is_array() || messages.empty()) {
    throw DataError(fmt::format("'{}' is not a list of messages", field));
  }
  for (const ordered_json& message : messages) {
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string()) {
      throw DataError("a message is not an object with a text 'role'");
    }
  }
  return messages;
}

}  // namespace trireme
