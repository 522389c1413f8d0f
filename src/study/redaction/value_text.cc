#include "src/study/redaction/value_text.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/redaction.h"
#include "src/study/redaction/secret_text.h"
#include "src/study/redaction/xml_elements.h"

namespace trireme {
namespace {

constexpr std::size_t kNetrcEntry = 512;           // bytes of an entry in ~/.netrc
constexpr std::size_t kFarthestQuote = 512;        // bytes in which the other quote is looked for
constexpr std::size_t kLongestTag = 1024;          // bytes
constexpr int kMostTags = 4;                       // of YAML, and anchors, before a value
constexpr std::size_t kLongestIndentation = 4096;  // bytes

std::size_t begin_of_line(std::string_view text, std::size_t at) {
  return at == 0 ? 0 : text.rfind('\n', at - 1) + 1;  // npos + 1 is 0
}

// Returns whether a command at `at` assigns variables, each up to a blank, such as export.
bool begins_command(std::string_view text, std::size_t at) {
  constexpr std::array<std::string_view, 9> kCommands = {
      "export ", "declare ", "typeset ", "local ", "readonly ", "env ", "sudo ", "ENV ", "ARG "};
  return std::any_of(kCommands.begin(), kCommands.end(),
                     [&](std::string_view each) { return text.substr(at).starts_with(each); });
}

// Returns whether the lines behind the line end at `at` go on with an indented one.
bool is_continued(std::string_view text, std::size_t at) {
  const std::size_t next = text.find_first_not_of("\r\n", at);
  return next != std::string_view::npos && is_blank(text[next]);
}

// Returns whether as many backslashes before a quote stand for themselves or for other backslashes.
bool is_unescaped(std::string_view quote, std::size_t slashes) {
  return slashes + 1 >= quote.size() && (slashes + 1 - quote.size()) % (2 * quote.size()) == 0;
}

// Returns whether no other quote of its kind follows the one at `at` on its line. In YAML and in
// shells, a backslash does not escape a single quote.
bool is_last_in_line(std::string_view text, std::size_t at) {
  const std::size_t next = text.find_first_of("'\n", at + 1);
  return next == std::string_view::npos || text[next] == '\n';
}

// Returns the end of a header's value: of its line, or the quote that is open around it.
std::size_t end_of_header(std::string_view text, std::size_t begin, std::string_view open) {
  const std::size_t end = end_of_line(text, begin);
  for (std::size_t at = begin; at < end; ++at) {
    const bool escape = text[at] == '\\' && open == "\"";
    at += escape ? 1 : 0;
    if (!escape && open.find(text[at]) != std::string_view::npos) {
      return at;
    }
  }
  return end;
}

}  // namespace

bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::size_t end_of_line(std::string_view text, std::size_t at) {
  return std::min(text.find('\n', at), text.size());
}

std::string_view line_before(std::string_view text, std::size_t at) {
  constexpr std::size_t kNearWords = 256;
  const std::size_t least = at > kNearWords ? at - kNearWords : 0;
  const std::string_view before = text.substr(least, at - least);
  return before.substr(before.rfind('\n') + 1);
}

std::size_t first_of(std::string_view text, std::string_view characters, std::size_t at) {
  return std::min(text.find_first_of(characters, at), text.size());
}

std::size_t first_of_plain(std::string_view text, std::string_view characters, std::size_t at) {
  while (at < text.size()) {
    const std::size_t entity = entity_bytes(text, at);
    if (entity == 0 && characters.find(text[at]) != std::string_view::npos) {
      break;
    }
    at += std::max(entity, std::size_t{1});
  }
  return std::min(at, text.size());
}

bool begins_line(std::string_view text, std::size_t at) {
  const std::size_t least = at > kLongestIndentation ? at - kLongestIndentation : 0;
  while (at > least && (is_blank(text[at - 1]) || text[at - 1] == '-' || text[at - 1] == '?')) {
    --at;
  }
  return at == 0 || text[at - 1] == '\n';
}

std::size_t assignment_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  for (const std::string_view signs : {"?+|", ":", "="}) {  // "+:=" is one, but "=+" is not
    end = std::min(text.find_first_not_of(signs, end), text.size());
  }
  if (end == at || (text[end - 1] != '=' && text[end - 1] != ':')) {
    return 0;
  }
  return end - at + (text.substr(end).starts_with('>') && text[end - 1] == '=' ? 1 : 0);
}

std::size_t end_of_quote(std::string_view text, std::size_t begin, std::string_view quote,
                         bool any_line) {
  const std::string three(3, quote.back());
  if (quote.size() == 1 && begin > 0 && text.substr(begin - 1).starts_with(three)) {
    return std::min(text.find(three, begin + 2), text.size());
  }
  std::size_t slashes = 0;
  for (std::size_t at = begin; at < text.size(); ++at) {
    if (text[at] == '\n' && slashes == 0 && !is_continued(text, at)) {
      const std::size_t close =
          any_line ? text.substr(at, kFarthestQuote).find(quote) : std::string::npos;
      if (close == std::string_view::npos) {
        return at;
      }
      at += close - 1;
    } else if (text[at] == '\\') {
      ++slashes;
    } else if (text[at] == quote.back() &&
               (is_unescaped(quote, slashes) || (quote == "'" && is_last_in_line(text, at)))) {
      if (slashes > 0 || !text.substr(at + 1).starts_with(quote)) {
        return at + 1 - quote.size();
      }
      ++at;
    } else {
      slashes = 0;
    }
  }
  return text.size();
}

std::string open_quotes(std::string_view text, std::size_t at) {
  const std::size_t least = at > kFarthestQuote ? at - kFarthestQuote : 0;
  std::string_view before = text.substr(least, at - least);
  before.remove_prefix(before.rfind('\n') + 1);
  std::string open;
  for (const char quote : {'"', '\''}) {
    if (std::count(before.begin(), before.end(), quote) % 2 == 1) {
      open += quote;
    }
  }
  return open;
}

std::size_t end_of_shell_word(std::string_view text, std::size_t at, std::string_view open) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_+/@%!#*~^-$").find(c) != std::string_view::npos;
  };
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("\\'") && open.empty()) {
      at += 2;
    } else if (const bool quote = rest[0] == '"' || rest[0] == '\'';
               quote && open.find(rest[0]) == std::string_view::npos) {
      const std::size_t close = end_of_quote(text, at + 1, rest.substr(0, 1));
      const bool closed = close < text.size() && text[close] == rest[0];
      at = closed ? close + 1 : at + 1;
    } else if (is_part(rest[0]) || (rest[0] == '.' && rest.size() > 1 && is_part(rest[1]))) {
      ++at;
    } else {
      break;
    }
  }
  return at;
}

std::size_t end_of_argument(std::string_view text, std::size_t at, std::string_view open) {
  while (at < text.size() && !is_blank(text[at]) && text[at] != '\n' && text[at] != '\r') {
    const std::string_view rest = text.substr(at);
    const std::string_view quote = quote_at(text, at);
    const bool around = quote.size() == 1 && open.find(quote[0]) != std::string_view::npos;
    if (around && rest.starts_with("'\\''")) {
      at += 4;
    } else if (around) {
      break;
    } else if (!quote.empty() && (quote.size() == 1 || !open.empty())) {
      const std::size_t begin = at + quote.size();
      const std::size_t close = quote == "'"
                                    ? text.substr(0, end_of_line(text, begin)).find('\'', begin)
                                    : end_of_quote(text, begin, quote);
      const bool closed = close < text.size() && text.substr(close).starts_with(quote);
      at = closed ? close + quote.size() : end_of_line(text, begin);
    } else {
      const std::size_t slashes = std::min(rest.find_first_not_of('\\'), rest.size());
      const bool escape = slashes == 1 && rest.size() > 1 && rest[1] != '\n';
      at += slashes > 1 ? slashes / 2 * 2 : escape ? 2 : 1;
    }
  }
  return std::min(at, text.size());
}

std::size_t end_of_block(std::string_view text, std::size_t at, std::size_t key, bool lists) {
  const std::size_t indent = key - begin_of_line(text, key);
  std::size_t end = end_of_line(text, at);
  const std::size_t sign = lists ? first_of(text, "|>#\n", at) : end;
  const bool literal = sign < end && text[sign] != '#';
  for (std::size_t line = end + 1; line < text.size();) {
    const std::size_t first = std::min(text.find_first_not_of(" \t\r", line), text.size());
    if (first == text.size()) {
      break;
    }
    // A comment may stand anywhere but in a text below '|' or '>'.
    if (text[first] == '#' && !(literal && first - line > indent)) {
      line = end_of_line(text, first) + 1;
      continue;
    }
    const bool list = lists && first - line == indent && text.substr(first).starts_with("- ");
    if (first - line > indent && text[first] != '\n') {
      end = end_of_line(text, first);
    } else if (list) {
      end = end_of_line(text, first);
    } else if (text[first] != '\n') {
      break;
    }
    line = end_of_line(text, first) + 1;
  }
  return end;
}

bool introduces_block(std::string_view text, std::size_t at) {
  const std::size_t first = text.find_first_not_of(" \t\r", at);
  if (first == std::string_view::npos ||
      std::string_view("|>!&#\n").find(text[first]) == std::string_view::npos) {
    return first == std::string_view::npos;
  }
  std::string_view rest = text.substr(at, end_of_line(text, at) - at);
  for (int words = 0; !rest.empty(); ++words) {
    const std::size_t begin = rest.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos || rest[begin] == '#') {
      return true;
    }
    const std::string_view word = rest.substr(begin, rest.find_first_of(" \t\r", begin) - begin);
    const bool indicator = (word[0] == '|' || word[0] == '>') &&
                           word.find_first_not_of("+-0123456789", 1) == std::string_view::npos;
    if ((!indicator && word[0] != '!' && word[0] != '&') || words > kMostTags) {
      return false;
    }
    rest.remove_prefix(begin + word.size());
  }
  return true;
}

bool is_pair(std::string_view text, std::size_t comma) {
  if (comma >= text.size() || text[comma] != ',') {
    return false;
  }
  const std::size_t begin = skip_white(text, comma + 1);
  const std::string_view quote = quote_at(text, begin);
  if (quote.empty()) {
    return false;
  }
  const std::size_t end = end_of_quote(text, begin + quote.size(), quote);
  const std::size_t next = skip_white(text, end + quote_at(text, end).size());
  return next >= text.size() || text[next] != ':';
}

std::size_t end_of_tuple(std::string_view text, std::size_t key, std::size_t at) {
  const std::size_t before = key == 0 ? key : text.substr(0, key).find_last_not_of(' ');
  if (before >= key || text[before] != ',') {
    return at;
  }
  while (at < text.size() && text[at] == ',') {
    const std::size_t begin = skip_blanks(text, at + 1);
    const std::string_view quote = quote_at(text, begin);
    const std::size_t end = end_of_quote(text, begin + quote.size(), quote.empty() ? "'" : quote);
    if (quote.empty() || !text.substr(end).starts_with(quote)) {
      break;
    }
    at = end + quote.size();
  }
  return at;
}

bool begins_json(std::string_view text, std::size_t at) {
  return at < text.size() && (std::string_view("[{\"").find(text[at]) != std::string_view::npos ||
                              text.substr(at).starts_with(kRedacted));
}

bool is_quoted_key(std::string_view text, std::size_t at) {
  const std::string_view quote = quote_at(text, at);
  if (quote.empty()) {
    return false;
  }
  const std::size_t end = end_of_quote(text, at + quote.size(), quote);
  const std::size_t behind = skip_blanks(text, end + quote_at(text, end).size());
  return behind < text.size() && text[behind] == ':';
}

bool follows_netrc(std::string_view text, std::size_t begin) {
  const std::size_t least = begin > kNetrcEntry ? begin - kNetrcEntry : 0;
  std::string_view before = text.substr(least, begin - least);
  if (begins_line(text, begin)) {
    return before.starts_with("machine ") || before.starts_with("default") ||
           before.find("\nmachine ") != std::string_view::npos ||
           before.find("\ndefault") != std::string_view::npos ||
           before.find("login ") != std::string_view::npos;
  }
  before.remove_prefix(before.rfind('\n') + 1);
  return before.find("machine ") != std::string_view::npos ||
         before.find("login ") != std::string_view::npos;
}

bool is_explicit_key(std::string_view text, std::size_t key) {
  return key > 1 && text[key - 1] == ' ' && text[key - 2] == '?' && begins_line(text, key);
}

std::size_t end_of_tags(std::string_view text, std::size_t at) {
  for (int tags = 0; tags < kMostTags && at < text.size() && (text[at] == '!' || text[at] == '&');
       ++tags) {
    const std::string_view near = text.substr(0, at + kLongestTag);
    const std::size_t end = first_of(near, " \t\n", at);
    if (end == near.size() && near.size() < text.size()) {
      break;
    }
    at = skip_blanks(text, end);
  }
  return at;
}

std::optional<std::size_t> end_of_value(std::string_view text, std::size_t begin,
                                        std::string_view quote, std::string_view name,
                                        char assignment, std::size_t key) {
  const bool option = assignment == '=' && name.starts_with("--");  // ends at a blank
  const bool entry = assignment != ' ' && !option && begins_line(text, key) &&
                     !(assignment == '=' && begins_command(text, key));
  if (!quote.empty()) {
    const bool any_line = assignment == '=' && (entry || begins_shell_assignment(text, key));
    return end_of_quote(text, begin, quote, any_line);
  }
  // Headers such as "Authorization: Basic dXNlcjp..." have blanks.
  if (assignment == ':' && (name.ends_with("ookie") || name.ends_with("uthorization"))) {
    return end_of_header(text, begin, open_quotes(text, key));
  }
  // So have values in YAML, where they may go on below, and in listings of the environment.
  std::size_t end = entry ? end_of_line(text, begin) : begin;
  const bool quoted_key = text[key] == '"' || text[key] == '\'';
  if (entry && (!quoted_key ||
                text.substr(begin, end - begin).find_first_of("\",") == std::string_view::npos)) {
    while (assignment != ':' && end > begin && text[end - 1] == '\\' && end < text.size()) {
      end = end_of_line(text, end + 1);
    }
    return std::max(end, end_of_block(text, begin, key, false));
  }
  return std::nullopt;
}

}  // namespace trireme
