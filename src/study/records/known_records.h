// KnownRecords writes a site's JSON and YAML anew, with nothing in it that could be a secret or a
// name: of fields, those that is_known_field(); of texts, those that is_known_word(), and
// versions; of numbers, those where the formats have figures. In the place of any other text stands
// a pseudonym (text-1, or host-1 for hosts), the same one throughout an archive. An object of one
// archive; one thread.
#pragma once

#include <cstdint>
#include <filesystem>
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
  // mark: stands in all pseudonyms (text-MARK-1) unless it is empty, so that those of two archives
  // differ, which do not stand for the same text. It must tell nothing about the texts.
  explicit KnownRecords(std::string mark = "") : mark_(std::move(mark)) {}

  struct Kept {
    std::string text;
    std::int64_t removed = 0;  // values with a pseudonym in their place, and lines left out
  };

  // file: its name. Takes configurations ("config.yaml"), and JSON that is_known_file(), or whose
  // fields are all known and say its schema. Of lines of JSON, the others are left out. Throws
  // DataError if the file is no such record.
  Kept keep(const std::filesystem::path& file, std::string_view text);
  // Returns a path in which only names that is_known_file() stay; others become file-1.json. Of
  // suffixes, those of texts stay.
  std::string keep_path(const std::string& path);

 private:
  // Where a value stands.
  struct Place {
    FieldKind kind = FieldKind::figures;
    std::string field;  // its name
    Place below(std::string_view name) const;
    bool keeps_numbers() const;
    bool keeps_words() const;
  };

  std::string pseudonym(const std::string& text, const char* kind);
  // Does so with a text at a place, and counts it.
  std::string own_pseudonym(const std::string& text, const Place& place);
  std::string kept_text(const std::string& text, const Place& place);
  // Return what stands for the name of a field in YAML ("train.steps") or in JSON, and the place of
  // its value.
  std::pair<std::string, Place> kept_key(std::string_view key, const Place& place);
  std::pair<std::string, Place> kept_name(const std::string& name, const Place& place);
  static bool is_record(const nlohmann::ordered_json& object);
  nlohmann::ordered_json kept_value(const nlohmann::ordered_json& value, const Place& place);
  std::string kept_document(std::string_view text, bool is_known);
  std::string kept_lines(std::string_view lines, bool is_known);
  std::string kept_scalar(const std::string& text, const Place& place);
  std::string kept_config_value(const ConfigValue& value, const Place& place);
  std::string kept_config(std::string_view yaml);

  std::string mark_;
  std::map<std::string, std::string> pseudonyms_;
  std::map<std::string, int> counts_;  // of pseudonyms, by kind
  std::int64_t removed_ = 0;           // in the text at hand
};

}  // namespace trireme
