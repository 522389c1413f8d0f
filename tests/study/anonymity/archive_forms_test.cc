// Tries the tables of docs/studies.md that say which secrets and names an archive does not hold:
// the text of each row becomes what the row says, and what should stay does.
#include <string>

#include <gtest/gtest.h>

#include "src/study/anonymity/anonymity.h"
#include "src/study/anonymity/ordinary_words.h"
#include "src/study/redaction/redaction.h"
#include "src/study/redaction/secret_names.h"
#include "tests/study/anonymity/documented_forms.h"

namespace trireme {
namespace {

constexpr const char* kForms = "| form |";

TEST(ArchiveForms, SecretNames) {
  const auto rows = rows_of("Secrets that are found", "| names that |");
  EXPECT_GE(rows.size(), 7U);
  for (const auto& row : rows) {
    const auto secret = texts_in(row.at(1));
    const auto others = texts_in(row.at(2));
    EXPECT_FALSE(secret.empty() || others.empty()) << row[0];
    for (const std::string& name : secret) {
      EXPECT_TRUE(is_secret_name(name)) << name;
    }
    for (const std::string& name : others) {
      EXPECT_FALSE(is_secret_name(name)) << name;
    }
  }
}

TEST(ArchiveForms, Secrets) {
  const auto rows = rows_of("Secrets that are found", kForms);
  EXPECT_GE(rows.size(), 57U);
  for (const auto& row : rows) {
    const auto texts = texts_in(row.at(1));
    const auto results = texts_in(row.at(2));
    ASSERT_EQ(texts.size(), 1U) << row[0];
    ASSERT_EQ(results.size(), 1U) << row[0];
    EXPECT_EQ(redact(texts[0]).text, results[0]) << row[0];
    EXPECT_EQ(redact(results[0]).text, results[0]) << row[0];
    const auto others = texts_in(row.at(3));
    EXPECT_FALSE(others.empty()) << row[0];
    for (const std::string& other : others) {
      EXPECT_EQ(redact(other).text, other) << row[0];
    }
  }
}

std::string anonymous(const std::string& text) {
  Anonymity anonymity;
  anonymity.learn(text);
  anonymity.learn(text);
  return anonymity.apply(text);
}

TEST(ArchiveForms, Names) {
  const auto rows = rows_of("Names that are found", kForms);
  EXPECT_GE(rows.size(), 25U);
  for (const auto& row : rows) {
    const auto texts = texts_in(row.at(1));
    const auto results = texts_in(row.at(2));
    ASSERT_EQ(texts.size(), 1U) << row[0];
    ASSERT_EQ(results.size(), 1U) << row[0];
    EXPECT_EQ(anonymous(texts[0]), results[0]) << row[0];
    const auto others = texts_in(row.at(3));
    EXPECT_FALSE(others.empty()) << row[0];
    for (const std::string& other : others) {
      EXPECT_EQ(anonymous(other), other) << row[0];
    }
  }
}

// An acceptance in an archive still says what was measured.
TEST(ArchiveForms, CommandsAreNoHosts) {
  const std::string profile =
      "nodes: n[1-2]\nnode:\n  start: [srun, \"--nodelist={node}\"]\n  measures:\n    - health\n"
      "    - memtool\n  at_least: 93\nlink:\n  measures: [p2p]\n";
  const std::string told =
      "hosts: [health, n1]\nnode: gemm\nrun trireme health on host n1 with memtool";
  Anonymity anonymity;
  anonymity.learn(profile);
  anonymity.learn(told);
  EXPECT_EQ(anonymity.apply(told),
            "hosts: [health, host-1]\nnode: gemm\nrun trireme health on host host-1 with memtool");
}

// Except for "alpha", which many hosts are called.
TEST(ArchiveForms, WordsOfTheConfigurationAreNoHosts) {
  const std::string page =
      read_file(std::filesystem::path(TRIREME_SOURCE_DIR) / "docs" / "configuration.md", 1 << 20);
  const std::string row = "\n| `";
  int keys = 0;
  for (std::size_t at = page.find(row); at != std::string::npos; at = page.find(row, at + 1)) {
    const std::string key =
        page.substr(at + row.size(), page.find('`', at + row.size()) - at - row.size());
    if (key.find('.') == std::string::npos ||
        key.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.0123456789") != std::string::npos) {
      continue;
    }
    ++keys;
    std::string word;
    for (const char c : key + ".") {
      if (c != '.') {
        word += c;
        continue;
      }
      EXPECT_TRUE(word == "alpha" || is_ordinary_word(word))
          << word << ": add it to src/study/anonymity/ordinary_words.cc";
      word.clear();
    }
  }
  EXPECT_GT(keys, 100);
}

}  // namespace
}  // namespace trireme
