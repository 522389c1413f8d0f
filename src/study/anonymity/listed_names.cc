#include "src/study/anonymity/listed_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "src/study/anonymity/name_words.h"
#include "src/study/anonymity/placed_cells.h"
#include "src/study/redaction/table_fields.h"

namespace trireme {
namespace {

// Keys, options and variables that name hosts and users, in lower case.
constexpr std::array<std::string_view, 21> kHostKeys = {"host",
                                                        "hosts",
                                                        "hostname",
                                                        "node",
                                                        "nodes",
                                                        "nodelist",
                                                        "nodename",
                                                        "suspect",
                                                        "partner",
                                                        "members",
                                                        "exclude",
                                                        "hostlist",
                                                        "nodes_with_bad_links",
                                                        "reqnodelist",
                                                        "excnodelist",
                                                        "nodeaddr",
                                                        "nodehostname",
                                                        "batchhost",
                                                        "master_addr",
                                                        "hostnames",
                                                        "node_addr"};
constexpr std::array<std::string_view, 10> kUserKeys = {"user",     "users",   "owner", "account",
                                                        "username", "logname", "uname", "login",
                                                        "userid",   "mailuser"};
// Words of tables that are no names.
constexpr std::array<std::string_view, 66> kColumnWords = {
    "state",   "status",  "ip",      "address", "addr",     "port",      "rank",     "ranks",
    "time",    "reason",  "cpu",     "cpus",    "gpu",      "gpus",      "memory",   "mem",
    "job",     "jobid",   "name",    "names",   "uid",      "gid",       "group",    "groups",
    "home",    "shell",   "id",      "load",    "avail",    "partition", "features", "idle",
    "down",    "up",      "drained", "alloc",   "mixed",    "unknown",   "none",     "null",
    "all",     "any",     "true",    "false",   "yes",      "no",        "ok",       "failed",
    "error",   "errors",  "value",   "values",  "count",    "type",      "kind",     "role",
    "version", "uptime",  "date",    "size",    "password", "secret",    "token",    "key",
    "email",   "redacted"};
constexpr std::size_t kMostColumns = 64;
constexpr std::size_t kLongestLine = 4096;  // bytes of a header or a pair

// Returns whether a key is one of the names, or ends in one, as SLURM_JOB_USER does.
template <std::size_t N>
bool is_named_key(std::string_view key, const std::array<std::string_view, N>& names) {
  const std::string own = lowered(key.substr(std::min(key.find_first_not_of('-'), key.size())));
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    return own.ends_with(name) && (own.size() == name.size() || own.starts_with("slurm") ||
                                   own[own.size() - name.size() - 1] == '_');
  });
}

bool has_digit(std::string_view word) {
  return word.find_first_of("0123456789") != std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\"'"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t\r\"'") + 1 - begin);
}

// Removes a comment, blanks and quotes around a scalar of YAML.
std::string_view scalar(std::string_view text) { return trimmed(text.substr(0, text.find(" #"))); }

// Returns whether a text has the form of another: '0' stands for a digit, 'D' for a digit or blank,
// and 'A' for any character.
bool has_form(std::string_view text, std::string_view form) {
  for (std::size_t at = 0; at < form.size(); ++at) {
    const char c = at < text.size() ? text[at] : '\0';
    const bool digit = c >= '0' && c <= '9';
    const bool fits = form[at] == '0'   ? digit
                      : form[at] == 'D' ? digit || c == ' '
                      : form[at] == 'A' ? c != '\0'
                                        : c == form[at];
    if (!fits) {
      return false;
    }
  }
  return true;
}

// Returns the place behind the time with which a line of the system's log begins, as in
// "Nov  9 19:42:39 n7" and "2026-11-29T20:00:00.123+01:00 n7", or 0.
std::size_t behind_time_stamp(std::string_view line) {
  constexpr std::string_view kMonths = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec ";
  constexpr std::string_view kShort = "AAA D0 00:00:00";
  constexpr std::string_view kLong = "0000-00-00T00:00:00";
  const bool is_short = has_form(line, kShort) && kMonths.find(line.substr(0, 4)) % 4 == 0;
  if (!is_short && !has_form(line, kLong)) {
    return 0;
  }
  const std::size_t end =
      std::min(line.find_first_not_of("0123456789.:+-Z", is_short ? kShort.size() : kLong.size()),
               line.size());
  return end < line.size() && line[end] == ' ' ? end + 1 : 0;
}

bool is_column_title(std::string_view word) {
  return std::find(kColumnWords.begin(), kColumnWords.end(), lowered(word)) != kColumnWords.end();
}

enum class Kind { host, user };

std::optional<Kind> kind_of_key(std::string_view key) {
  return is_host_key(key)   ? std::optional(Kind::host)
         : is_user_key(key) ? std::optional(Kind::user)
                            : std::nullopt;
}

// NameTables reads a text line by line.
class NameTables {
 public:
  explicit NameTables(std::string_view text) : text_(text) {}

  ListedNames run() {
    std::size_t end_of_table = 0;
    for (std::size_t at = 0; at < text_.size();) {
      const TableField line = table_line(text_, at);
      block_line(text_.substr(line.begin, line.end - line.begin));
      system_log_line(text_.substr(line.begin, line.end - line.begin));
      if (at >= end_of_table && line.end - line.begin < kLongestLine) {
        end_of_table = std::max(columns(line), line.begin);
      }
      at = behind_line(text_, line.end);
    }
    return std::move(names_);
  }

 private:
  // Adds a name from a table. Slurm cuts names that are too long, and puts a '+' there; a list of
  // hosts then is its first one. Behind a user may stand a number, as in "jane(1000)".
  void add_cell(Kind kind, std::string_view cell) {
    const std::size_t bracket = cell.ends_with('+') ? cell.rfind('[') : std::string_view::npos;
    if (bracket != std::string_view::npos && cell.find(']', bracket) == std::string_view::npos) {
      const std::string_view first = cell.substr(bracket + 1);
      names_.hosts.push_back(std::string(cell.substr(0, bracket)) +
                             std::string(first.substr(0, first.find_first_of(",-+"))));
    } else if (cell.ends_with('+') || kind == Kind::user) {
      add(kind, cell.substr(0, cell.find_first_of("+(")));
    } else {
      add(kind, cell);
    }
  }

  void add(Kind kind, std::string_view name) {
    const std::string small = lowered(name);
    const bool word =
        std::find(kColumnWords.begin(), kColumnWords.end(), small) != kColumnWords.end() ||
        kind_of_key(small);
    if (!word && name.find_first_of(" \t:/*{") == std::string_view::npos) {
      (kind == Kind::host ? names_.hosts : names_.users).emplace_back(name);
    }
  }

  // Handles a line such as "Nov  9 19:42:39 n7 sshd[5]: refused".
  void system_log_line(std::string_view line) {
    const std::size_t host = behind_time_stamp(line);
    const std::size_t end = line.find(' ', host);
    if (host == 0 || end == std::string_view::npos) {
      return;
    }
    const std::string_view program = line.substr(end + 1, line.find(' ', end + 1) - end - 1);
    if (program.ends_with(':') || line[0] > '9') {
      add(Kind::host, line.substr(host, end - host));
    }
  }

  // Returns whether a line stands directly below the key of the current block, or is a key of a
  // mapping that is an item there: what other keys hold, as in "node:\n  measures: ...", are no
  // names. content: the place behind the dash of an item.
  bool is_own_line(std::size_t indent, std::size_t content, bool item) {
    if (!block_) {
      return false;
    }
    if (!children_) {
      children_ = indent;
      contents_ = indent;
    }
    const bool first = indent == *children_;
    contents_ = first && item ? content : contents_;
    return first || indent == contents_;
  }

  // Handles a line that may be in a block of YAML, or begin one.
  void block_line(std::string_view line) {
    const std::size_t indent = line.find_first_not_of(" \t");
    if (indent == std::string_view::npos || line[indent] == '#') {
      return;
    }
    std::string_view content = line.substr(indent);
    const bool item = content.starts_with("- ");
    if (block_ && (indent < indent_ || (indent == indent_ && !item))) {
      block_.reset();
    }
    content.remove_prefix(item ? std::min(content.find_first_not_of("- \t{"), content.size()) : 0);
    const bool own = is_own_line(indent, item ? line.size() - content.size() : indent, item);
    const std::size_t colon = content.find(':');
    const bool mapping = colon != std::string_view::npos &&
                         (colon + 1 == content.size() || content[colon + 1] == ' ');
    const std::string_view key = trimmed(content.substr(0, mapping ? colon : 0));
    const std::string_view value = scalar(content.substr(mapping ? colon + 1 : 0));
    if (own && !mapping && item) {
      add(*block_, value);
    } else if (own && key == "name") {
      add(*block_, trimmed(value.substr(0, value.find_first_of(",}"))));
    } else if (own && block_ == Kind::host && mapping && (value.empty() || value[0] == '{') &&
               has_digit(key)) {
      add(Kind::host, key);
    }
    if (mapping && (value.empty() || value[0] == '&' || value[0] == '#')) {
      if (const auto kind = kind_of_key(key)) {
        block_ = kind;
        indent_ = indent;
        children_.reset();
      }
    }
  }

  std::vector<std::string_view> fields_of(TableField line, char separator,
                                          std::size_t blanks) const {
    std::vector<std::string_view> fields;
    const std::size_t end = line.end;
    for (const TableField& field : separator == ' '
                                       ? aligned_fields(text_, line, blanks, kMostColumns)
                                       : separated_fields(text_, line, separator, kMostColumns)) {
      fields.push_back(trimmed(text_.substr(field.begin, field.end - field.begin)));
    }
    return line.end == end ? fields : std::vector<std::string_view>();
  }

  struct Header {
    char separator = ' ';
    std::size_t blanks = 2;          // at least so many are between aligned columns
    std::vector<TableField> places;  // in the line, of aligned names or of the ruler's columns
    bool ruled = false;
    std::vector<std::optional<Kind>> kinds;  // by column
    std::vector<bool> named;                 // whether it has a kind
  };

  // Returns whether one of the names is that of a column of hosts or users.
  static bool take_names(Header& header, const std::vector<std::string_view>& names) {
    for (const std::string_view name : names) {
      const std::string_view plain = name.substr(0, name.find('('));
      header.kinds.push_back(is_name_of_column(plain) ? kind_of_key(plain) : std::nullopt);
      header.named.push_back(header.kinds.back().has_value());
    }
    return names.size() >= 2 && names.size() <= kMostColumns &&
           std::find(header.named.begin(), header.named.end(), true) != header.named.end();
  }

  // Handles a line that may be a pair or the header of a table. Returns the end of that table, or
  // 0.
  std::size_t columns(const TableField& line) {
    const std::string_view words = text_.substr(line.begin, line.end - line.begin);
    const std::size_t begin = behind_line(text_, line.end);
    const TableField below = begin < text_.size() ? table_line(text_, begin) : TableField();
    Header ruled;
    ruled.places = columns_of_ruler(text_.substr(below.begin, below.end - below.begin));
    ruled.ruled = true;
    if (take_names(ruled, cells_at(words, ruled.places))) {
      return rows(begin, ruled);
    }
    const std::size_t first = words.find_first_of(",;\t|");
    const bool capitals = std::none_of(words.begin(), words.end(), [](char c) {
      return std::islower(static_cast<unsigned char>(c)) != 0;
    });
    std::size_t last = 0;
    std::size_t columns_before = 0;
    for (const auto& [separator, blanks] :
         {std::pair<char, std::size_t>(first == std::string_view::npos ? ' ' : words[first], 2),
          std::pair<char, std::size_t>(' ', capitals ? 1 : 2)}) {
      const std::vector<std::string_view> names = fields_of(line, separator, blanks);
      Header header{separator, blanks, {}, false, {}, {}};
      if (!take_names(header, names) || names.size() == columns_before) {
        continue;
      }
      const Kind* const key = header.kinds[0] ? &*header.kinds[0] : nullptr;
      if (names.size() == 2 && key && is_pair(*key, names[1], begin, separator, blanks)) {
        add(*key, names[1]);
        return begin;
      }
      if (separator == ' ') {
        header.places = aligned_fields(words, {0, words.size()}, blanks, kMostColumns);
      }
      const std::size_t end = rows(begin, header);
      last = end > begin ? std::max(last, end) : last;
      columns_before = names.size();
    }
    return last;
  }

  // Returns whether two fields, the first of which is a key, are a name and its value rather than
  // the header of a table, which a line at `next` follows: a host's name has a digit, and behind a
  // user's, no row follows.
  bool is_pair(Kind kind, std::string_view value, std::size_t next, char separator,
               std::size_t blanks) const {
    if (kind_of_key(value) || is_column_title(value)) {
      return false;
    }
    if (kind == Kind::host) {
      return has_digit(value);
    }
    const auto fields = next < text_.size() ? fields_of(table_line(text_, next), separator, blanks)
                                            : std::vector<std::string_view>();
    return fields.size() != 2 || kind_of_key(fields[0]) || is_column_title(fields[0]);
  }

  static bool is_name_of_column(std::string_view name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), is_name);
  }

  // Returns the cells of a row, or none if the line is no row of the table.
  std::vector<std::string_view> cells_of(const TableField& line, const Header& header) const {
    const std::string_view own = text_.substr(line.begin, line.end - line.begin);
    std::vector<std::string_view> cells =
        header.ruled ? cells_at(own, header.places) : std::vector<std::string_view>();
    if (!cells.empty()) {
      return cells;
    }
    const CellsBelow below =
        header.separator == ' ' ? cells_below(own, header.places, header.named) : CellsBelow();
    if (below.sure) {
      return below.cells;
    }
    cells = fields_of(line, header.separator, header.blanks);
    if (header.separator == ' ' && cells.size() != header.kinds.size()) {
      cells = fields_of(line, header.separator, 1);
    }
    return cells.size() == header.kinds.size() ? cells : below.cells;
  }

  // Adds the names in the rows of a table that begin at `at`. Returns where they end.
  std::size_t rows(std::size_t at, const Header& header) {
    while (at < text_.size()) {
      const TableField line = table_line(text_, at);
      if (!is_ruler(text_.substr(line.begin, line.end - line.begin))) {
        const std::vector<std::string_view> cells = cells_of(line, header);
        // A pair of another key begins the next list.
        if (cells.empty() || (cells.size() == 2 && kind_of_key(cells[0]))) {
          break;
        }
        for (std::size_t column = 0; column < cells.size(); ++column) {
          if (header.kinds[column]) {
            add_cell(*header.kinds[column], trimmed(cells[column]));
          }
        }
      }
      at = behind_line(text_, line.end);
    }
    return at;
  }

  std::string_view text_;
  std::optional<Kind> block_;            // the kind of names in the current block of YAML
  std::size_t indent_ = 0;               // of its key
  std::optional<std::size_t> children_;  // the indentation of the lines directly below that key
  std::size_t contents_ = 0;             // and that of the keys in their last item
  ListedNames names_;
};

}  // namespace

bool is_host_key(std::string_view key) { return is_named_key(key, kHostKeys); }
bool is_user_key(std::string_view key) { return is_named_key(key, kUserKeys); }

ListedNames listed_names(std::string_view text) { return NameTables(text).run(); }

}  // namespace trireme
