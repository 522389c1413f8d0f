#include "src/policy/label.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "src/base/calendar.h"
#include "src/base/config_tree.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr std::size_t kMostWordBytes = 64;
constexpr std::size_t kMostWords = 256;  // jurisdictions or owners of a label

bool is_letter_or_digit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Returns what is wrong with a label, or "".
std::string fault_of(const Label& label) {
  if (label.classification.empty()) {
    return "a label needs a classification";
  }
  const auto bad_word = [](const std::vector<std::string>& words) {
    const auto bad =
        std::find_if_not(words.begin(), words.end(), [](auto& w) { return is_label_word(w); });
    return bad == words.end() ? std::optional<std::string>() : *bad;
  };
  std::vector<std::string> words = {label.classification};
  words.insert(words.end(), label.owners.begin(), label.owners.end());
  if (label.jurisdictions) {
    words.insert(words.end(), label.jurisdictions->begin(), label.jurisdictions->end());
  }
  if (words.size() > kMostWords) {
    return fmt::format("a label has at most {} words", kMostWords);
  }
  if (const auto bad = bad_word(words)) {
    return fmt::format(
        "'{}' cannot stand in a label: use up to {} letters and digits, with - _ . and blanks "
        "between them",
        printable(*bad), kMostWordBytes);
  }
  if (!label.retention.empty() && !is_day(label.retention)) {
    return fmt::format("the retention '{}' is not a day in the form 2030-12-31",
                       printable(label.retention));
  }
  return "";
}

void sort_words(std::vector<std::string>& words) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t comma = text.find(',');
    words.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) {
      return words;
    }
    text.remove_prefix(comma + 1);
  }
}

// Adds a word of the form KEY=VALUE.
void put_label_word(const std::string& word, Label& label) {
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (equals == std::string::npos || value.empty()) {
    throw ConfigError(fmt::format(
        "--label '{}' is not of the form KEY=VALUE, as in classification=secret", printable(word)));
  }
  const auto set_once = [&](std::string& field) {
    if (!field.empty()) {
      throw ConfigError(fmt::format("--label gives the {} twice", key));
    }
    field = value;
  };
  if (key == "classification") {
    set_once(label.classification);
  } else if (key == "retention") {
    set_once(label.retention);
  } else if (key == "owner") {
    const std::vector<std::string> more = split_words(value);
    label.owners.insert(label.owners.end(), more.begin(), more.end());
  } else if (key == "jurisdiction") {
    if (!label.jurisdictions) {
      label.jurisdictions.emplace();
    }
    const std::vector<std::string> more = split_words(value);
    label.jurisdictions->insert(label.jurisdictions->end(), more.begin(), more.end());
  } else {
    const std::vector<std::string> known = {"classification", "jurisdiction", "owner", "retention"};
    const std::string nearest = nearest_word(key, known);
    throw ConfigError(
        fmt::format("--label has no key '{}'{}: its keys are {}", printable(key),
                    nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest),
                    fmt::join(known, ", ")));
  }
}

const std::string& higher(const std::string& a, const std::string& b,
                          const std::vector<std::string>& order) {
  if (a == b) {
    return a;
  }
  const auto place = [&](const std::string& which) {
    const auto at = std::find(order.begin(), order.end(), which);
    if (at == order.end()) {
      throw PolicyError(fmt::format(
          "the labels '{}' and '{}' cannot be joined, because '{}' is not among the "
          "classifications of this site ({}): list them in order in /etc/trireme/policy.yaml",
          printable(a), printable(b), printable(which), fmt::join(order, ", ")));
    }
    return at;
  };
  return place(a) < place(b) ? b : a;
}

std::vector<std::string> words_field(const nlohmann::json& object, const char* name) {
  std::vector<std::string> words;
  for (const nlohmann::json& item : array_field(object, name)) {
    if (!item.is_string()) {
      throw DataError(fmt::format("'{}' is not a list of texts", name));
    }
    words.push_back(item.get<std::string>());
  }
  std::vector<std::string> sorted = words;
  sort_words(sorted);
  if (sorted != words) {
    throw DataError(fmt::format("'{}' is not sorted, or has a word twice", name));
  }
  return words;
}

}  // namespace

const std::vector<std::string>& default_classifications() {
  static const std::vector<std::string> kOrder = {"public", "internal", "confidential",
                                                  "restricted", "secret"};
  return kOrder;
}

bool is_label_word(std::string_view text) {
  if (text.empty() || text.size() > kMostWordBytes || !is_letter_or_digit(text.front()) ||
      !is_letter_or_digit(text.back())) {
    return false;
  }
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.' || c == ' ';
  });
}

std::string Label::to_string() const {
  std::string text = classification;
  if (jurisdictions) {
    text += jurisdictions->empty()
                ? "; no jurisdiction"
                : fmt::format("; jurisdiction {}", fmt::join(*jurisdictions, ", "));
  }
  if (!owners.empty()) {
    text += fmt::format("; owner {}", fmt::join(owners, ", "));
  }
  return retention.empty() ? text : fmt::format("{}; until {}", text, retention);
}

std::optional<Label> join(const std::optional<Label>& a, const std::optional<Label>& b,
                          const std::vector<std::string>& order) {
  if (!a || !b) {
    return a ? a : b;
  }
  Label both;
  both.classification = higher(a->classification, b->classification, order);
  if (a->jurisdictions && b->jurisdictions) {
    both.jurisdictions.emplace();
    std::set_intersection(a->jurisdictions->begin(), a->jurisdictions->end(),
                          b->jurisdictions->begin(), b->jurisdictions->end(),
                          std::back_inserter(*both.jurisdictions));
  } else {
    both.jurisdictions = a->jurisdictions ? a->jurisdictions : b->jurisdictions;
  }
  std::set_union(a->owners.begin(), a->owners.end(), b->owners.begin(), b->owners.end(),
                 std::back_inserter(both.owners));
  both.retention = a->retention.empty()   ? b->retention
                   : b->retention.empty() ? a->retention
                                          : std::min(a->retention, b->retention);
  return both;
}

std::optional<Label> parse_label(const std::vector<std::string>& words) {
  if (words.empty()) {
    return kUnlabelled;
  }
  Label label;
  for (const std::string& word : words) {
    put_label_word(word, label);
  }
  if (const std::string fault = fault_of(label); !fault.empty()) {
    throw ConfigError("--label: " + fault);
  }
  sort_words(label.owners);
  if (label.jurisdictions) {
    sort_words(*label.jurisdictions);
  }
  return label;
}

nlohmann::ordered_json to_json(const Label& label) {
  nlohmann::ordered_json object = {{"classification", label.classification}};
  if (label.jurisdictions) {
    object["jurisdictions"] = *label.jurisdictions;
  }
  if (!label.owners.empty()) {
    object["owners"] = label.owners;
  }
  if (!label.retention.empty()) {
    object["retention"] = label.retention;
  }
  return object;
}

nlohmann::ordered_json label_json(const std::optional<Label>& label) {
  return label ? to_json(*label) : nlohmann::ordered_json();
}

std::optional<Label> label_of(const nlohmann::json& manifest) {
  if (!manifest.contains("label")) {
    return kUnlabelled;
  }
  const nlohmann::json& object = object_field(manifest, "label");
  Label label;
  label.classification = text_field(object, "classification");
  if (object.contains("jurisdictions")) {
    label.jurisdictions = words_field(object, "jurisdictions");
  }
  if (object.contains("owners")) {
    label.owners = words_field(object, "owners");
  }
  if (object.contains("retention")) {
    label.retention = text_field(object, "retention");
  }
  for (const auto& [key, value] : object.items()) {
    // A restriction that this program does not know must not be dropped.
    if (key != "classification" && key != "jurisdictions" && key != "owners" &&
        key != "retention") {
      throw DataError(
          fmt::format("the label has the unknown field '{}': use a newer trireme", printable(key)));
    }
  }
  if (const std::string fault = fault_of(label); !fault.empty()) {
    throw DataError("'label': " + fault);
  }
  return label;
}

}  // namespace trireme
