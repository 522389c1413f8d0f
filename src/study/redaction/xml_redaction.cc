#include "src/study/redaction/xml_redaction.h"

#include <algorithm>
#include <optional>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/redaction.h"
#include "src/study/redaction/secret_names.h"

namespace trireme {
namespace {

std::string_view trimmed_text(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

// Copies a range of XML without its secrets.
class XmlScan {
 public:
  XmlScan(std::string_view text, const XmlElements& elements, std::size_t at,
          std::string& announced, std::string& out)
      : text_(text), elements_(elements), at_(at), announced_(announced), out_(out) {}

  // Copies up to `end`, behind an element or a tag.
  void run(std::size_t end) {
    while (at_ < end) {
      if (const XmlMark* const mark = elements_.mark(at_)) {
        copy_to(mark->begin);
        search(mark->text_end, text_.substr(at_, mark->text_end - at_), false);
        copy_to(mark->end);
      } else if (const auto tag = tag_here()) {
        markup(*tag);
      } else {
        const std::size_t next = std::min(next_markup(), end);
        search(next, text_.substr(at_, next - at_), true);
      }
    }
  }

  std::int64_t secrets() const { return secrets_; }

 private:
  void copy_to(std::size_t end) {
    out_ += text_.substr(at_, end - at_);
    at_ = end;
  }

  std::optional<XmlTag> tag_here() const {
    return text_[at_] == '<' ? xml_tag_at(text_, at_) : std::nullopt;
  }

  std::size_t next_markup() const {
    std::size_t at = text_.find('<', at_ + 1);
    while (at != std::string_view::npos && elements_.mark(at) == nullptr &&
           !xml_tag_at(text_, at)) {
      at = text_.find('<', at + 1);
    }
    return std::min(at, text_.size());
  }

  // Copies a text up to `end` without its secrets. entities: it may hold some.
  void search(std::size_t end, std::string_view own, bool entities) {
    const std::string meaning = entities ? without_entities(own) : std::string(own);
    const Redacted redacted = redact(meaning);
    secrets_ += redacted.secrets;
    out_ += redacted.text == meaning ? std::string(own)
            : entities               ? with_entities(redacted.text, own)
                                     : redacted.text;
    at_ = end;
  }

  // Replaces what is up to `end`, which `name` makes a secret, unless it tells nothing.
  void replace(std::size_t end, std::string_view name) {
    const std::string_view own = trimmed_text(text_.substr(at_, end - at_));
    if (own == kRedacted || is_harmless_value(name, own)) {
      copy_to(end);
      return;
    }
    out_ += kRedacted;
    ++secrets_;
    at_ = end;
  }

  // Copies a tag, and what is between it and its end tag if that is a secret or the name of one.
  void markup(const XmlTag& tag) {
    const std::string name = secret_name(tag);
    const auto end_tag = elements_.end_tag(at_);
    attributes(tag, name);
    if (tag.empty || !end_tag) {
      return;
    }
    const std::string_view word = trimmed_text(text_.substr(at_, *end_tag - at_));
    if (!name.empty()) {
      replace(*end_tag, name);
    } else if (is_name_key(tag.name) && word.find('<') == word.npos && is_secret_name(word)) {
      copy_to(xml_tag_at(text_, *end_tag)->end);
      announced_ = word;
    }
  }

  // Returns the name that makes the contents of an element a secret, or "": its own, that in an
  // attribute, as in <entry key="password">, or that in the element before it, as in
  // <key>password</key>.
  std::string secret_name(const XmlTag& tag) {
    std::string name = is_secret_name(tag.name) ? std::string(tag.name) : announced_;
    announced_.clear();
    if (tag.closes) {
      return "";
    }
    for (const XmlAttribute& each : tag.attributes) {
      const std::string_view value = text_.substr(each.begin, each.end - each.begin);
      if (name.empty() && is_name_key(each.name) && is_secret_name(value)) {
        name = value;
      }
    }
    return name;
  }

  // Copies a tag without the values of its attributes that are secrets. name: that of the element.
  void attributes(const XmlTag& tag, const std::string& name) {
    for (const XmlAttribute& each : tag.attributes) {
      const std::string_view value = text_.substr(each.begin, each.end - each.begin);
      copy_to(each.begin);
      if (is_secret_name(each.name)) {
        replace(each.end, each.name);
      } else if (name.empty() || (is_name_key(each.name) && is_secret_name(value))) {
        search(each.end, value, true);
      } else {
        replace(each.end, name);
      }
    }
    copy_to(tag.end);
  }

  std::string_view text_;
  const XmlElements& elements_;
  std::size_t at_;
  std::string& announced_;  // the name that the element before has given the next one
  std::string& out_;
  std::int64_t secrets_ = 0;
};

}  // namespace

std::size_t redact_xml(std::string_view text, const XmlElements& elements, std::size_t at,
                       std::string& announced, std::string& out, std::int64_t& secrets) {
  std::size_t end = at;
  if (const XmlMark* const mark = elements.mark(at)) {
    end = mark->end;
  } else if (const auto tag = xml_tag_at(text, at)) {
    const auto end_tag = elements.end_tag(at);
    const auto last = end_tag && !tag->empty ? xml_tag_at(text, *end_tag) : std::nullopt;
    end = last ? last->end : tag->end;
  }
  XmlScan scan(text, elements, at, announced, out);
  scan.run(end);
  secrets += scan.secrets();
  return end;
}

}  // namespace trireme
