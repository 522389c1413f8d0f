#include <algorithm>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "src/base/digest.h"
#include "src/figures/svg.h"
#include "src/report/assets.h"
#include "src/report/document.h"

namespace trireme {
namespace {

// Returns the digest of a script in the form that a Content-Security-Policy takes.
std::string script_digest(std::string_view script) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string hex = sha256_hex(script);
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : hex) {
    bits = (bits << 4U) | static_cast<std::uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    count += 4;
    if (count >= 6) {
      count -= 6;
      out += kDigits[(bits >> static_cast<unsigned>(count)) & 63U];
    }
  }
  out += kDigits[(bits << static_cast<unsigned>(6 - count)) & 63U];  // 256 bits leave 4
  return out + "=";
}

// Returns JSON as the content of a script element, which "</script>" or "<!--" could end.
std::string script_data(const std::string& json) {
  std::string out;
  for (const char c : json) {
    out += c == '<' ? "\\u003c" : std::string(1, c);
  }
  return out;
}

// Returns whether a cell holds a number, with or without a percent sign, or a dash for none.
bool is_number(std::string_view cell) {
  if (cell.ends_with(" %")) {
    cell.remove_suffix(2);
  }
  return !cell.empty() && cell.find_first_not_of("0123456789-+.e") == std::string_view::npos;
}

// Returns for each column whether all of its cells are numbers, which are then set flush right.
std::vector<bool> number_columns(const DocTable& table) {
  std::vector<bool> numbers(table.head.size(), !table.rows.empty());
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < std::min(row.size(), numbers.size()); ++i) {
      numbers[i] = numbers[i] && is_number(row[i]);
    }
  }
  return numbers;
}

class Page {
 public:
  std::string write(const Document& document) {
    const std::string policy = fmt::format(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'; base-uri 'none'; "
        "form-action 'none'",
        script_digest(kReportScript));
    out_ = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n"
        "<style>\n{}</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the "
        "content</a>\n<header>\n<h1>{}</h1>\n",
        policy, xml_text(document.title), kReportStyle, xml_text(document.title));
    for (const std::string& each : document.paragraphs) {
      out_ += fmt::format("<p>{}</p>\n", xml_text(each));
    }
    out_ += "</header>\n";
    write_contents(document);
    out_ += "<main id=\"main\">\n";
    for (std::size_t i = 0; i < document.sections.size(); ++i) {
      write_section(document.sections[i], fmt::format("s{}", i), 2);
    }
    out_ += fmt::format(
        "</main>\n<footer><p>Made by trireme report. This page loads nothing from "
        "the network.</p></footer>\n<script>{}</script>\n</body>\n</html>\n",
        kReportScript);
    return std::move(out_);
  }

 private:
  void write_contents(const Document& document) {
    if (document.sections.size() < 2) {
      return;
    }
    out_ += "<nav aria-label=\"Contents\">\n<ul>\n";
    for (std::size_t i = 0; i < document.sections.size(); ++i) {
      out_ += fmt::format("<li><a href=\"#s{}\">{}</a></li>\n", i,
                          xml_text(document.sections[i].heading));
    }
    out_ += "</ul>\n</nav>\n";
  }

  void write_section(const DocSection& section, const std::string& id, int level) {
    out_ += fmt::format("<section aria-labelledby=\"{0}\">\n<h{1} id=\"{0}\">{2}</h{1}>\n", id,
                        level, xml_text(section.heading));
    for (const std::string& each : section.paragraphs) {
      out_ += fmt::format("<p>{}</p>\n", xml_text(each));
    }
    for (const std::string& each : section.remarks) {
      out_ += fmt::format("<p class=\"remark\">{}</p>\n", xml_text(each));
    }
    for (const DocFigure& figure : section.figures) {
      write_figure(figure, level + 1);
    }
    for (const DocTable& table : section.tables) {
      write_table(table);
    }
    if (!section.text.empty()) {
      out_ += fmt::format(
          "<details><summary>{0}</summary>\n<pre tabindex=\"0\" role=\"region\" aria-label=\"{0}\">"
          "{1}</pre></details>\n",
          xml_text(section.text_heading), lines(section.text));
    }
    for (std::size_t i = 0; i < section.parts.size(); ++i) {
      write_section(section.parts[i], fmt::format("{}-{}", id, i), level + 1);
    }
    out_ += "</section>\n";
  }

  // Escapes a text of several lines; xml_text() makes a blank of a line end.
  static std::string lines(std::string_view text) {
    std::string out;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      out += xml_text(text.substr(0, end)) + "\n";
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return out;
  }

  void write_figure(const DocFigure& figure, int level) {
    constexpr std::string_view kOpening = "<svg ";
    const std::string heading = xml_text(figure.heading);
    out_ += fmt::format("<figure{0}>\n<h{1} id=\"f{2}\">{3}</h{1}>\n",
                        figure.data.empty() ? "" : " data-zoom", level, figures_, heading);
    out_ += fmt::format(
        "<div class=\"plot\" tabindex=\"0\" role=\"group\" aria-labelledby=\"f{}\">"
        "<svg role=\"img\" aria-label=\"{}. {}\" {}</div>\n",
        figures_, heading, xml_text(figure.summary),
        std::string_view(figure.svg).substr(kOpening.size()));
    out_ += fmt::format("<figcaption>{}</figcaption>\n", xml_text(figure.summary));
    if (!figure.data.empty()) {
      out_ +=
          fmt::format("<script type=\"application/json\">{}</script>\n", script_data(figure.data));
    }
    if (!figure.table.head.empty()) {
      out_ += fmt::format("<details><summary>Table: {}</summary>\n", heading);
      write_table(figure.table);
      out_ += "</details>\n";
    }
    out_ += "</figure>\n";
    ++figures_;
  }

  void write_table(const DocTable& table) {
    const std::string caption = xml_text(table.caption);
    out_ += fmt::format(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\">"
        "<table>\n<caption>{0}</caption>\n<thead><tr>",
        caption);
    const std::vector<bool> numbers = number_columns(table);
    const auto look = [&](std::size_t i) { return i > 0 && numbers[i] ? " class=\"n\"" : ""; };
    for (std::size_t i = 0; i < table.head.size(); ++i) {
      out_ += fmt::format("<th scope=\"col\"{}>{}</th>", look(i), xml_text(table.head[i]));
    }
    out_ += "</tr></thead>\n<tbody>\n";
    for (const auto& row : table.rows) {
      out_ += "<tr>";
      for (std::size_t i = 0; i < row.size(); ++i) {
        out_ += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", xml_text(row[i]))
                       : fmt::format("<td{}>{}</td>", look(i), xml_text(row[i]));
      }
      out_ += "</tr>\n";
    }
    out_ += "</tbody></table></div>\n";
  }

  std::string out_;
  int figures_ = 0;
};

}  // namespace

std::string to_html(const Document& document) { return Page().write(document); }

}  // namespace trireme
