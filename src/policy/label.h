// A Label says how data has to be treated: a dataset gets one when it is packed, and a checkpoint
// has the join of the labels of everything it was made from. Labels form a lattice: the join of two
// is the weakest label that restricts at least as much as both.
//
//   classification   the higher of the two, in the order that the policy of the site gives
//   jurisdictions    those in which both may lie; absent: any
//   owners           all of them
//   retention        the earlier of the two last days of use; absent: no end
//
// In a manifest, a label is the object
//
//   "label": {"classification": "secret", "jurisdictions": ["AE"], "owners": ["health"],
//             "retention": "2030-12-31"}
//
// Values with pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

struct Label {
  std::string classification;
  std::optional<std::vector<std::string>> jurisdictions;  // sorted; empty list: nowhere
  std::vector<std::string> owners;                        // sorted
  std::string retention;                                  // "YYYY-MM-DD", or "" without an end

  friend bool operator==(const Label&, const Label&) = default;
  // Returns "secret; jurisdiction AE, SA; owner health; until 2030-12-31".
  std::string to_string() const;
};

// Data without a label.
inline constexpr std::nullopt_t kUnlabelled = std::nullopt;

// The order of classifications, from the lowest, where no policy gives another one.
const std::vector<std::string>& default_classifications();

// Returns the join. Something without a label adds nothing to it. Throws PolicyError if the
// classifications differ and one of them is not in `order` (lowest first).
std::optional<Label> join(const std::optional<Label>& a, const std::optional<Label>& b,
                          const std::vector<std::string>& order);

// Returns the label in words of the form "classification=secret", "jurisdiction=AE,SA",
// "owner=health" and "retention=2030-12-31", or nothing if there are no words. Throws ConfigError.
std::optional<Label> parse_label(const std::vector<std::string>& words);

// Returns whether the text can be a classification, a jurisdiction, an owner or the like: letters,
// digits, and between them - _ . and blanks; at most 64 bytes.
bool is_label_word(std::string_view text);

nlohmann::ordered_json to_json(const Label& label);
// Returns the object, or null without a label.
nlohmann::ordered_json label_json(const std::optional<Label>& label);
// Returns the label in the field "label" of a manifest, or nothing if there is none. Throws
// DataError.
std::optional<Label> label_of(const nlohmann::json& manifest);

}  // namespace trireme
