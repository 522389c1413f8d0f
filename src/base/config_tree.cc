#include "src/base/config_tree.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <set>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::size_t kMaxKeyBytes = 200;  // includes the names of the sections

bool plain(const std::string& text) {
  const bool safe = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '+' || c == '.' || c == '/';
  });
  return safe && !text.empty() && text != "null" && text != "Null" && text != "NULL" &&
         text != "-" && text != "---" && text != "...";
}

std::string quoted(const std::string& text) {
  if (plain(text)) {
    return text;
  }
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

// Flattens the parser's events. A frame of the stack is a mapping that expects a key or a key's
// value. The mappings of a list are not flattened: their YAML is written on one line.
class Flattener : public YAML::EventHandler {
 public:
  explicit Flattener(std::string origin) : origin_(std::move(origin)) {}
  std::vector<ConfigEntry> take() { return std::move(entries_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) {
      fail(mark, "a second YAML document starts here, but a configuration is a single document");
    }
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    value(mark, "", anchor, nullptr);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    value(mark, tag, anchor, &text);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(mark, "aliases (*name) are not supported: write the value out");
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_extras(mark, tag, anchor);
    if (in_list_ || frames_.empty() || !frames_.back().has_key) {
      fail(mark, in_list_ ? "a list within a list is not supported"
                          : "expected `key: value`, but found a list");
    }
    in_list_ = true;
    list_ = {full_key(), ConfigValue::list({}), mark.line + 1};
    list_frames_ = frames_.size();
  }
  void OnSequenceEnd() override {
    in_list_ = false;
    frames_.back().has_key = false;
    add(std::move(list_));
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_extras(mark, tag, anchor);
    const bool begins_item = in_list_ && !in_item();
    if (begins_item) {
      begin_item(mark, ConfigValue::Kind::mappings);
    } else if (!frames_.empty() && !frames_.back().has_key) {
      fail(mark, "expected a value, but found a mapping");
    }
    if (frames_.size() >= kMaxConfigDepth) {
      fail(mark, fmt::format("the configuration is nested deeper than {} levels", kMaxConfigDepth));
    }
    if (in_list_) {
      list_.value.items.back() += '{';
    }
    const std::string prefix = frames_.empty() || begins_item ? "" : full_key() + ".";
    frames_.push_back({prefix, "", false, mark.line + 1, {}});
  }
  void OnMapEnd() override {
    const bool is_empty = frames_.back().seen.empty();
    const int line = frames_.back().line;
    frames_.pop_back();
    if (in_list_) {
      list_.value.items.back() += '}';
      if (in_item()) {
        frames_.back().has_key = false;
      }
      return;
    }
    if (frames_.empty()) {
      return;
    }
    frames_.back().has_key = false;
    if (is_empty) {
      add({full_key(), {ConfigValue::Kind::mapping, {}}, line});
    }
  }

 private:
  struct Frame {
    std::string prefix;
    std::string key;
    bool has_key;
    int line;
    std::set<std::string> seen;
  };

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& what) const {
    throw ConfigError(fmt::format("{}:{}: {}", origin_, mark.line + 1, what));
  }

  void refuse_extras(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != 0) {
      fail(mark, "anchors (&name) are not supported: write the value out where it is used");
    }
    if (tag.size() > 1) {  // "?" is a plain scalar's tag, "!" a quoted one's
      fail(mark, fmt::format("the tag {} is not supported: remove it", tag));
    }
  }

  std::string full_key() const { return frames_.back().prefix + frames_.back().key; }

  // Returns whether the parser is within a mapping of a list.
  bool in_item() const { return in_list_ && frames_.size() > list_frames_; }

  void begin_item(const YAML::Mark& mark, ConfigValue::Kind kind) {
    ConfigValue& value = list_.value;
    if (!value.items.empty() && value.kind != kind) {
      fail(mark, "a list holds either values or mappings, not both");
    }
    if (value.items.size() >= kMaxConfigEntries) {
      fail(mark, fmt::format("a list has more than {} items", kMaxConfigEntries));
    }
    value.kind = kind;
    value.items.emplace_back();
  }

  // text: null for YAML's null.
  void value(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
             const std::string* text) {
    refuse_extras(mark, tag, anchor);
    if (text != nullptr && text->find('\0') != std::string::npos) {
      fail(mark, "a value must not contain a NUL byte (\\0)");
    }
    if (in_list_ && !in_item()) {
      begin_item(mark, ConfigValue::Kind::list);
      list_.value.items.back() = text == nullptr ? "" : *text;
    } else if (frames_.empty()) {
      if (text != nullptr) {
        fail(mark, "expected `key: value`, but found a text");
      }
    } else if (!frames_.back().has_key) {
      begin_key(mark, text == nullptr ? "" : *text);
    } else {
      frames_.back().has_key = false;
      ConfigValue scalar = text == nullptr ? ConfigValue{} : ConfigValue::scalar(*text);
      if (in_list_) {
        list_.value.items.back() += scalar.to_yaml();
      } else {
        add({full_key(), std::move(scalar), mark.line + 1});
      }
    }
  }

  void begin_key(const YAML::Mark& mark, const std::string& key) {
    const bool legal = std::all_of(key.begin(), key.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
    });
    if (key.empty() || !legal || frames_.back().prefix.size() + key.size() > kMaxKeyBytes) {
      fail(mark, fmt::format("'{}' is not a valid key: keys consist of letters, digits, '_', '-' "
                             "and '.', and have at most {} characters with those of their section",
                             key.substr(0, kMaxKeyBytes), kMaxKeyBytes));
    }
    Frame& frame = frames_.back();
    if (!frame.seen.insert(key).second) {
      fail(mark, fmt::format("the key {}{} occurs twice", frame.prefix, key));
    }
    frame.key = key;
    frame.has_key = true;
    if (in_list_) {
      list_.value.items.back() += fmt::format("{}{}: ", frame.seen.size() > 1 ? ", " : "", key);
    }
  }

  void add(ConfigEntry entry) {
    if (!keys_.insert(entry.key).second) {
      throw ConfigError(
          fmt::format("{}:{}: the key {} occurs twice", origin_, entry.line, entry.key));
    }
    if (entries_.size() >= kMaxConfigEntries) {
      throw ConfigError(fmt::format("{}:{}: there are more than {} keys", origin_, entry.line,
                                    kMaxConfigEntries));
    }
    entries_.push_back(std::move(entry));
  }

  std::string origin_;
  std::vector<Frame> frames_;
  std::vector<ConfigEntry> entries_;
  std::set<std::string> keys_;
  ConfigEntry list_;
  bool in_list_ = false;
  std::size_t list_frames_ = 0;  // number of frames around the list
  int documents_ = 0;
};

void refuse_binary(std::string_view yaml, const std::string& origin) {
  if (static_cast<std::int64_t>(yaml.size()) > kMaxConfigBytes) {
    throw ConfigError(
        fmt::format("{}: the file has {} bytes, but a configuration may have at most {}", origin,
                    yaml.size(), kMaxConfigBytes));
  }
  int line = 1;
  for (const char c : yaml) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7F) {
      throw ConfigError(fmt::format("{}:{}: found the byte 0x{:02x}: this is not a text file",
                                    origin, line, byte));
    }
    line += c == '\n' ? 1 : 0;
  }
}

// Returns the distance of optimal string alignment: the number of insertions, deletions,
// substitutions and swaps of neighbours that turn a into b.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> two_back(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(two_back, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], two_back[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

}  // namespace

std::string ConfigValue::to_yaml() const {
  if (kind == Kind::null) {
    return "~";
  }
  if (kind == Kind::mapping) {
    return "{}";
  }
  if (kind == Kind::scalar) {
    return quoted(items.at(0));
  }
  std::string out;
  for (const std::string& item : items) {
    out += (out.empty() ? "" : ", ") + (kind == Kind::mappings ? item : quoted(item));
  }
  return "[" + out + "]";
}

std::vector<ConfigEntry> parse_config(std::string_view yaml, const std::string& origin) {
  refuse_binary(yaml, origin);
  std::istringstream stream{std::string(yaml)};
  Flattener flattener(origin);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(flattener)) {
    }
  } catch (const YAML::Exception& e) {
    throw ConfigError(fmt::format("{}:{}: not valid YAML: {} (column {})", origin, e.mark.line + 1,
                                  e.msg, e.mark.column + 1));
  }
  return flattener.take();
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  std::string nearest;
  std::size_t least = (word.size() < 5 ? 1 : std::max<std::size_t>(2, word.size() / 3)) + 1;
  for (const std::string& candidate : known) {
    // A right name in the wrong section counts as one change.
    const std::size_t distance = std::min(edit_distance(word, candidate),
                                          edit_distance(last_part(word), last_part(candidate)) + 1);
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace trireme
