#include <algorithm>

#include <fmt/format.h>

#include "src/base/printable.h"
#include "src/report/document.h"

namespace trireme {
namespace {

// Escapes what Markdown, or HTML within it, would interpret, and keeps the text in one line.
std::string plain_text(const std::string& text) {
  std::string out;
  for (const char c : printable_lines(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (std::string_view("\\`*_[]|#!~$").find(c) != std::string_view::npos) {
      out += '\\';
      out += c;
    } else {
      out += byte < 0x20 || byte == 0x7f ? ' ' : c;
    }
  }
  return out;
}

std::string markdown_of(const DocTable& table) {
  if (table.head.empty()) {
    return "";
  }
  std::string out = table.caption.empty() ? "" : fmt::format("*{}*\n\n", plain_text(table.caption));
  const auto add_row = [&](const std::vector<std::string>& cells) {
    out += "|";
    for (const std::string& cell : cells) {
      out += " " + plain_text(cell) + " |";
    }
    out += "\n";
  };
  add_row(table.head);
  out += "|";
  for (std::size_t i = 0; i < table.head.size(); ++i) {
    out += "---|";
  }
  out += "\n";
  for (const auto& row : table.rows) {
    add_row(row);
  }
  return out + "\n";
}

// Returns a fence of backquotes that is longer than any run of them in the text.
std::string fence_for(const std::string& text) {
  std::size_t longest = 2;
  std::size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return std::string(longest + 1, '`');
}

std::string markdown_of(const DocSection& section, int level) {
  const std::string marks(static_cast<std::size_t>(level), '#');
  std::string out = fmt::format("{} {}\n\n", marks, plain_text(section.heading));
  for (const std::string& each : section.paragraphs) {
    out += plain_text(each) + "\n\n";
  }
  for (const std::string& each : section.remarks) {
    out += "> " + plain_text(each) + "\n\n";
  }
  for (const DocFigure& figure : section.figures) {
    out += fmt::format("{}# {}\n\n{}\n\n{}", marks, plain_text(figure.heading),
                       plain_text(figure.summary), markdown_of(figure.table));
  }
  for (const DocTable& table : section.tables) {
    out += markdown_of(table);
  }
  if (!section.text.empty()) {
    const std::string fence = fence_for(section.text);
    out += fmt::format("{}:\n\n{}\n{}\n{}\n\n", plain_text(section.text_heading), fence,
                       printable_lines(section.text), fence);
  }
  for (const DocSection& part : section.parts) {
    out += markdown_of(part, level + 1);
  }
  return out;
}

}  // namespace

std::string to_markdown(const Document& document) {
  std::string out = fmt::format("# {}\n\n", plain_text(document.title));
  for (const std::string& each : document.paragraphs) {
    out += plain_text(each) + "\n\n";
  }
  for (const DocSection& section : document.sections) {
    out += markdown_of(section, 2);
  }
  return out;
}

}  // namespace trireme
