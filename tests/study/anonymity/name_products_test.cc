// Tries every name of the tables of docs/studies.md in every form: a name and a form that are
// found each may still not be found together.
#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "src/study/redaction/redaction.h"
#include "src/study/redaction/secret_names.h"
#include "tests/study/anonymity/documented_forms.h"

namespace trireme {
namespace {

constexpr std::size_t kSecret = 1;    // column of the names of secrets
constexpr std::size_t kHarmless = 2;  // and of the others
constexpr std::string_view kValue = "ab12cd34";

std::vector<std::string> documented_names(std::size_t column) {
  std::vector<std::string> names;
  for (const auto& row : rows_of("Secrets that are found", "| names that |")) {
    for (const std::string& name : texts_in(row.at(column))) {
      names.push_back(name);
    }
  }
  return names;
}

bool is_part_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

// Returns the text with another name wherever `name` stands as a whole, also behind the dashes of
// an option.
std::string with_name(const std::string& text, std::string_view name, const std::string& other) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const bool begins = at == 0 || !is_part_of_name(text[at - 1]) ||
                        std::string_view(text).substr(0, at).ends_with("--");
    const bool ends = at + name.size() >= text.size() || !is_part_of_name(text[at + name.size()]);
    const bool here = begins && ends && std::string_view(text).substr(at).starts_with(name);
    result += here ? other : text.substr(at, 1);
    at += here ? name.size() : 1;
  }
  return result;
}

std::string filled(std::string_view form, const std::string& name) {
  std::string result;
  for (const char c : form) {
    result += c == 'N' ? name : c == 'V' ? std::string(kValue) : std::string(1, c);
  }
  return result;
}

// N is the name, V the value.
constexpr std::array<std::string_view, 60> kPlaces = {"N=V",
                                                      "N='V'",
                                                      R"(N="V")",
                                                      "N = V",
                                                      "N: V",
                                                      "N: 'V'",
                                                      R"(N: "V")",
                                                      "N:=V",
                                                      "N+=V",
                                                      "N?=V",
                                                      "N==V",
                                                      "N=>V",
                                                      "'N': 'V'",
                                                      R"("N": "V")",
                                                      R"("N" = "V")",
                                                      R"(\"N\": \"V\")",
                                                      "N='V' x=1",
                                                      "N=V x=1",
                                                      R"(N="V" x=1)",
                                                      "x=1 N=V",
                                                      R"(cfg["N"] = "V")",
                                                      R"(("N", "V"))",
                                                      "--N V",
                                                      "--N=V",
                                                      "--N 'V'",
                                                      R"(--N="V")",
                                                      "setenv N V",
                                                      R"(setenv N "V")",
                                                      "setx N V",
                                                      R"(N("V"))",
                                                      "{N: V}",
                                                      "<N>V</N>",
                                                      R"(<a N="V"/>)",
                                                      R"(<e key="N">V</e>)",

                                                      "N is V",
                                                      "N was set to 'V' now",
                                                      R"(N was set to "V" now)",
                                                      "N is V, he said",
                                                      "N changed to V",
                                                      "N becomes 'V'",
                                                      "N -> V",
                                                      R"(N is "V")",
                                                      "N for root: V",
                                                      "N for root: 'V'",
                                                      R"(N changed from "V" to "V")",
                                                      "N changed from V to V",
                                                      "N rotated from 'V' to 'V'.",
                                                      "N was updated: V",
                                                      "N for admin is V",
                                                      "N of user joe was set to 'V'",
                                                      "N has been set to V!",
                                                      "N is V, V and V",
                                                      "N: V -> V",
                                                      "'N=V V' x",
                                                      R"("N=V V" x)",
                                                      "N=V,V]V x",
                                                      "--N V;V y",
                                                      "--N=V}V y",
                                                      "N for root: V V",
                                                      "N FOR ROOT IS V"};
constexpr std::array<std::string_view, 19> kBefore = {
    "",           "export ",      "env ",
    "sudo ",      "set ",         "declare -x ",
    "my ",        "the ",         "x ",
    "mpirun -x ", "ssh h ",       "rank 3: ",
    "[rank 3] ",  "a, ",          "docker run -e ",
    "the new ",   "environment ", "  ",
    "\t"};

// Returns a name with another sign between its words, or a capital: api-key, api.key, apiKey.
std::string joined_by(const std::string& name, char sign) {
  std::string result;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const bool between = name[at] == '_' && at > 0 && at + 1 < name.size();
    if (between && sign == 'C') {
      result += static_cast<char>(std::toupper(static_cast<unsigned char>(name[++at])));
    } else {
      result += between ? sign : name[at];
    }
  }
  return result;
}

bool has_capital(const std::string& name) {
  return std::any_of(name.begin(), name.end(),
                     [](char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; });
}

std::string in_json(const std::string& text) {
  std::string result = R"({"message":")";
  for (const char c : text) {
    result += c == '"' || c == '\\' ? std::string{'\\', c} : c == '\t' ? "\\t" : std::string{c};
  }
  return result + R"( lr 3", "step": 4})";
}

std::string in_yaml(const std::string& text) {
  std::string result = "on_event: '";
  for (const char c : text) {
    result += c == '\'' ? "''" : std::string{c};
  }
  return result + "'\nlr: 1\n";
}

// Returns whether the page says that a row does not hold for a name.
bool is_exempt(const std::string& row, const std::string& text, const std::string& name) {
  const bool number = text.find("4711") != std::string::npos;
  return (counts_something(name) && (number || row.starts_with(" columns"))) ||
         (row.starts_with(" names with `pass`") && !is_password_name(name));
}

// "auth" is a key of JSON, and X-Auth a header.
bool is_exempt_auth(std::string_view before, std::string_view form, const std::string& name) {
  return name == "auth" && (before == "x " || form.find("N': ") < form.size() ||
                            form.find("N\": ") < form.size() || form.find("N\\\": ") < form.size());
}

TEST(RedactionProducts, EveryNameInEveryRow) {
  constexpr std::array<std::string_view, 7> kRowNames = {
      "pin", "password", "DB_PASS", "api_key", "API_KEY", "API key", "auth-token"};
  const auto names = documented_names(kSecret);
  std::size_t tried = 0;
  for (const auto& row : rows_of("Secrets that are found", "| form |")) {
    const std::string text = texts_in(row.at(1)).at(0);
    const std::string result = texts_in(row.at(2)).at(0);
    const auto* const own = std::find_if(kRowNames.begin(), kRowNames.end(), [&](auto name) {
      return with_name(text, name, "") != text;
    });
    for (const std::string& name : own == kRowNames.end() ? std::vector<std::string>() : names) {
      if (!is_exempt(row[0], text, name)) {
        EXPECT_EQ(redact(with_name(text, *own, name)).text, with_name(result, *own, name))
            << row[0];
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 2000U);
}

TEST(RedactionProducts, EveryNameBehindEveryWord) {
  for (const std::string& name : documented_names(kSecret)) {
    for (const std::string_view before : kBefore) {
      for (const std::string_view form : kPlaces) {
        const std::string text = std::string(before) + filled(form, name);
        const std::string result = redact(text).text;
        EXPECT_EQ(result.find(kValue), std::string::npos) << text;
        EXPECT_EQ(redact(result).text, result) << text;
      }
    }
  }
}

TEST(RedactionProducts, EveryNameWithinOtherTexts) {
  for (const std::string& name : documented_names(kSecret)) {
    for (const std::string_view before : {"", "export ", "docker run -e ", "the "}) {
      for (const std::string_view form : kPlaces) {
        const std::string text = std::string(before) + filled(form, name);
        for (const std::string& whole : {in_json(text), in_yaml(text)}) {
          EXPECT_EQ(redact(whole).text.find(kValue), std::string::npos) << whole;
        }
      }
    }
  }
}

TEST(RedactionProducts, EveryNameHoweverItsWordsAreJoined) {
  for (const std::string& name : documented_names(kSecret)) {
    for (const char sign : has_capital(name) ? std::string() : std::string("-.C")) {
      for (const std::string_view before : {"", "export ", "the "}) {
        for (const std::string_view form : kPlaces) {
          const std::string text = std::string(before) + filled(form, joined_by(name, sign));
          EXPECT_EQ(redact(text).text.find(kValue), std::string::npos) << text;
        }
      }
    }
  }
}

TEST(RedactionProducts, OtherNamesBehindEveryWord) {
  for (const std::string& name : documented_names(kHarmless)) {
    for (const std::string_view before : kBefore) {
      for (const std::string_view form : kPlaces) {
        const std::string text = std::string(before) + filled(form, name);
        if (!is_exempt_auth(before, form, name)) {
          EXPECT_EQ(redact(text).text, text);
        }
      }
    }
  }
}

}  // namespace
}  // namespace trireme
