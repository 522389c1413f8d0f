// Tries the tables of docs/studies.md that say which secrets and names an archive does not hold:
// the text of each row becomes what the row says, and what should stay does.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/study/anonymity/anonymity.h"
#include "src/study/redaction/redaction.h"
#include "src/study/redaction/secret_names.h"

namespace trireme {
namespace {

// Returns the cells of a row of a table in Markdown.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (std::size_t at = 1; at < line.size(); ++at) {
    if (line[at - 1] == '|' && (at == 1 || line[at - 2] != '\\')) {
      cells.emplace_back();
    }
    cells.back() += line[at];
  }
  return cells;
}

// Returns the texts in back ticks of a cell, in which \n is the end of a line.
std::vector<std::string> texts_in(const std::string& cell) {
  std::vector<std::string> texts;
  for (std::size_t open = cell.find('`'); open != std::string::npos; open = cell.find('`', open)) {
    const std::size_t close = cell.find('`', open + 1);
    std::string& text = texts.emplace_back();
    for (std::size_t at = open + 1; at < close; ++at) {
      const bool escape = cell[at] == '\\' && at + 1 < close;
      const char c = escape ? cell[++at] : cell[at];
      text += !escape    ? c
              : c == 'n' ? '\n'
              : c == 't' ? '\t'
              : c == 'r' ? '\r'
              : c == 'e' ? '\033'
                         : c;
    }
    open = close + 1;
  }
  return texts;
}

// Returns the rows of all tables with this header below a title.
std::vector<std::vector<std::string>> rows_of(const std::string& title, const std::string& header) {
  const std::string page =
      read_file(std::filesystem::path(TRIREME_SOURCE_DIR) / "docs" / "studies.md", 1 << 20);
  std::size_t at = page.find("\n### " + title + "\n");
  const std::size_t last = std::min(page.find("\n### ", at + 1), page.size());
  std::vector<std::vector<std::string>> rows;
  for (bool in_table = false; at < last;) {
    const std::size_t end = std::min(page.find('\n', at), page.size());
    const std::string line = page.substr(at, end - at);
    at = end + 1;
    if (line.starts_with(header)) {
      in_table = true;
    } else if (!line.starts_with('|')) {
      in_table = false;
    } else if (in_table && !line.starts_with("|---")) {
      rows.push_back(cells_of(line));
    }
  }
  return rows;
}

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

}  // namespace
}  // namespace trireme
