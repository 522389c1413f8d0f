// Finds the texts in JSON, so that what they mean can be searched, and numbers stay as they are.
// Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct JsonString {
  std::size_t begin = 0, end = 0;  // with its quotes
  bool is_key = false;
};

// Returns the strings of a valid text of JSON.
std::vector<JsonString> strings_of_json(std::string_view json);
// Returns what a string of JSON in quotes means, and a text as such a string.
std::string meaning_of_string(std::string_view string);
std::string json_string(const std::string& text);

}  // namespace trireme
