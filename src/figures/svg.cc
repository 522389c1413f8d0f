#include "src/figures/svg.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/base/printable.h"

namespace trireme {
namespace {

// XML carries neither bytes that are not UTF-8, nor most control characters, nor U+FFFE and U+FFFF.
std::string carried(std::string_view text) {
  using Json = nlohmann::json;
  auto out = Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))
                 .get<std::string>();
  for (const std::string_view no_character : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"}) {
    for (std::size_t at = 0; (at = out.find(no_character, at)) != std::string::npos;) {
      out.replace(at, no_character.size(), "\xEF\xBF\xBD");
    }
  }
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return out;
}

}  // namespace

Svg::Svg(double width, double height, std::string_view attributes, std::string_view css) {
  out_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\" font-family=\"sans-serif\" {2}>\n",
      width, height, attributes);
  if (!css.empty()) {
    out_ += fmt::format("<style>{}</style>\n", css);
  }
  out_ += "<rect class=\"page\" width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
}

void Svg::text(double x, double y, std::string_view anchor, std::string_view words,
               std::string_view attributes) {
  out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y,
                      anchor, attributes, xml_text(words));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view attributes) {
  out_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1,
                      y1, x2, y2, attributes);
}

void Svg::box(double x, double y, double width, double height, std::string_view attributes,
              std::string_view tooltip) {
  out_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" {}", x, y,
                      width, height, attributes);
  out_ += tooltip.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", xml_text(tooltip));
}

void Svg::path(std::string_view points, std::string_view attributes) {
  out_ += fmt::format("<path d=\"{}\" {}/>\n", points, attributes);
}

void Svg::begin_group(std::string_view attributes) { out_ += fmt::format("<g {}>\n", attributes); }

void Svg::end_group() { out_ += "</g>\n"; }

std::string mixed_colour(const SvgColour& from, const SvgColour& to, double part) {
  const auto mix = [part](double a, double b) { return std::lround(a + (b - a) * part); };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(from.red, to.red), mix(from.green, to.green),
                     mix(from.blue, to.blue));
}

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : carried(printable_lines(text))) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace trireme
