// KnownRecords writes a site's JSON and YAML anew, with nothing in it that could be a secret or a
// name: of fields, those that is_known_field(); of texts, those that is_known_word(), times and
// versions. In the place of any other text stands a pseudonym (text-1, or host-1 for hosts), the
// same one throughout an archive. An object of one archive; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "src/base/config_tree.h"
#include "src/study/records/known_fields.h"

namespace trireme {

class KnownRecords {
 public:
  struct Kept {
    std::string text;
    std::int64_t removed = 0;  // texts with a pseudonym in their place, numbers, and damaged lines
  };

  // suffix: of the file, such as ".json". Numbers of unknown fields become null, and lines of
  // ".jsonl" that are no JSON are left out. Throws DataError if it is no suffix of JSON or YAML, or
  // the text is neither.
  Kept keep(std::string_view suffix, std::string_view text);
  // Returns a path in which only names that is_known_file() stay; others become file-1.json. Of
  // suffixes, those of texts stay.
  std::string keep_path(const std::string& path);

 private:
  // Where a value stands.
  struct Place {
    bool keeps_figures = true;
    Naming naming = Naming::nothing;
    bool is_bits = false;  // the field holds the bits of a float in hexadecimal
    bool is_name = false;  // the field is called so, and may consist of several words
    Place below(std::string_view field) const;
  };

  std::string pseudonym(const std::string& text, const char* kind);
  // Does so with a text at a place, and counts it.
  std::string own_pseudonym(const std::string& text, const Place& place);
  std::string kept_text(const std::string& text, const Place& place);
  // Returns a key of YAML such as "train.steps", and where its value stands; and the same for the
  // name of a field of JSON.
  std::pair<std::string, Place> kept_key(std::string_view key, const Place& place);
  std::pair<std::string, Place> kept_name(const std::string& name, const Place& place);
  nlohmann::json kept_value(const nlohmann::json& value, const Place& place);
  std::string kept_lines(std::string_view lines);
  std::string kept_scalar(const std::string& text, const Place& place);
  std::string kept_config_value(const ConfigValue& value, const Place& place);
  std::string kept_config(std::string_view yaml);

  std::map<std::string, std::string> pseudonyms_;
  std::map<std::string, int> counts_;  // of pseudonyms, by kind
  std::int64_t removed_ = 0;           // in the text at hand
};

}  // namespace trireme
