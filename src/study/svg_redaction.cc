#include "src/study/svg_redaction.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "src/study/assigned_text.h"
#include "src/study/secret_names.h"

namespace trireme {
namespace {

struct Entity {
  std::string_view name;
  char character;
};
constexpr std::array kEntities = {
    Entity{"&quot;", '"'}, Entity{"&apos;", '\''}, Entity{"&#34;", '"'},
    Entity{"&#39;", '\''}, Entity{"&lt;", '<'},    Entity{"&gt;", '>'},
    Entity{"&amp;", '&'},  Entity{"&#x22;", '"'},  Entity{"&#x27;", '\''}};

std::string without_entities(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const auto entity =
        rest[0] != '&' ? kEntities.end()
                       : std::find_if(kEntities.begin(), kEntities.end(), [&](const Entity& each) {
                           return rest.starts_with(each.name);
                         });
    plain += entity == kEntities.end() ? rest[0] : entity->character;
    at += entity == kEntities.end() ? 1 : entity->name.size();
  }
  return plain;
}

std::string with_entities(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto entity = std::find_if(kEntities.begin(), kEntities.end(),
                                     [&](const Entity& each) { return each.character == c; });
    if (entity == kEntities.end()) {
      result += c;
    } else {
      result += entity->name;
    }
  }
  return result;
}

// Returns the place behind what begins with the '<' at `at`: a tag, a comment or the like.
std::size_t end_of_tag(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  const std::string_view close = rest.starts_with("<!--")        ? "-->"
                                 : rest.starts_with("<![CDATA[") ? "]]>"
                                 : rest.starts_with("<?")        ? "?>"
                                                                 : "";
  if (!close.empty()) {
    const std::size_t end = text.find(close, at);
    return end == std::string_view::npos ? text.size() : end + close.size();
  }
  char quote = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != 0) {
      quote = c == quote ? '\0' : quote;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '>') {
      return at + 1;
    }
  }
  return at;
}

// Returns the bytes before the text of a comment or of CDATA, or 0 if this is another tag.
std::size_t mark_of_text(std::string_view tag) {
  return tag.starts_with("<!--") ? 4 : tag.starts_with("<![CDATA[") ? 9 : 0;
}

class SvgScan {
 public:
  explicit SvgScan(std::string_view text) : text_(text) {}

  Redacted run() {
    while (at_ < text_.size()) {
      const std::size_t end =
          text_[at_] == '<' ? end_of_tag(text_, at_) : std::min(text_.find('<', at_), text_.size());
      const std::string_view part = text_.substr(at_, end - at_);
      if (part[0] != '<') {
        content(part);
      } else if (const std::size_t mark = mark_of_text(part); mark > 0) {
        const std::size_t last = part.size() - std::min<std::size_t>(3, part.size() - mark);
        result_.text += part.substr(0, mark);
        add(redact(part.substr(mark, last - mark)));
        result_.text += part.substr(last);
      } else if (part.starts_with("<?") || part.starts_with("<!")) {
        result_.text += part;
      } else {
        tag(part);
      }
      at_ = end;
    }
    return std::move(result_);
  }

 private:
  void add(const Redacted& part) {
    result_.text += part.text;
    result_.secrets += part.secrets;
  }

  // Adds a text or the value of an attribute. name: that of its element or attribute.
  void value(std::string_view name, std::string_view own) {
    const std::string plain = without_entities(own);
    Redacted redacted = redact(plain);
    if (is_secret_name(name) && own != kRedacted && !is_harmless_value(name, own)) {
      redacted = {std::string(kRedacted), 1};
    }
    add({redacted.text == plain ? std::string(own) : with_entities(redacted.text),
         redacted.secrets});
  }

  void content(std::string_view part) { value(element_, part); }

  void tag(std::string_view part) {
    const std::size_t name = part.starts_with("</") ? 2 : 1;
    std::size_t at = end_of_word(part, name);
    element_ = name == 1 ? part.substr(name, at - name) : std::string_view();
    result_.text += part.substr(0, at);
    while (at < part.size()) {
      const std::size_t open = std::min(part.find_first_of("\"'", at), part.size());
      const std::size_t close =
          open == part.size() ? open : std::min(part.find(part[open], open + 1), part.size());
      result_.text += part.substr(at, open + 1 - at);
      if (open < close) {
        std::size_t end = open;
        while (end > at && (part[end - 1] == '=' || part[end - 1] == ' ')) {
          --end;
        }
        const std::size_t begin = part.substr(0, end).find_last_of(" \t\r\n:") + 1;
        value(part.substr(begin, end - begin), part.substr(open + 1, close - open - 1));
        result_.text += part.substr(close, 1);
      }
      at = std::min(close + 1, part.size());
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string_view element_;  // whose text comes next
  Redacted result_;
};

// Returns the tags of a text without the values of their attributes.
std::string tags_of(std::string_view text) {
  std::string tags;
  for (std::size_t at = text.find('<'); at < text.size(); at = text.find('<', at)) {
    const std::size_t end = end_of_tag(text, at);
    const std::size_t mark = mark_of_text(text.substr(at));
    char quote = 0;
    for (const char c : text.substr(at, mark > 0 ? mark : end - at)) {
      if (quote == 0 || c == quote) {
        tags += c;
        const bool is_quote = c == '"' || c == '\'';
        quote = !is_quote ? quote : quote == 0 ? c : '\0';
      }
    }
    at = end;
  }
  return tags;
}

}  // namespace

bool is_svg(std::string_view text) {
  const std::size_t mark = text.starts_with("\ufeff") ? 3 : 0;
  for (std::size_t at = text.find_first_not_of(" \t\r\n", mark); at < text.size();
       at = text.find_first_not_of(" \t\r\n", at)) {
    if (text.substr(at).starts_with("<svg")) {
      return true;
    }
    if (!text.substr(at).starts_with("<?") && !text.substr(at).starts_with("<!")) {
      return false;
    }
    at = end_of_tag(text, at);
  }
  return false;
}

Redacted redact_svg(std::string_view svg) { return SvgScan(svg).run(); }

bool have_same_tags(std::string_view a, std::string_view b) { return tags_of(a) == tags_of(b); }

}  // namespace trireme
