// Reads the tables of docs/studies.md that say which secrets and names an archive does not hold.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "src/base/file.h"

namespace trireme {

// Returns the cells of a row of a table in Markdown.
inline std::vector<std::string> cells_of(const std::string& line) {
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
inline std::vector<std::string> texts_in(const std::string& cell) {
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
inline std::vector<std::vector<std::string>> rows_of(const std::string& title,
                                                     const std::string& header) {
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

}  // namespace trireme
