#include "src/report/document.h"

#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/figures/line_plot.h"
#include "src/report/line_figure.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kHostile =
    "</script><script>alert(1)</script>'\"><img src=x onerror=e> & \x01\xff";

Document hostile_document() {
  const std::vector<double> step = {1, 2, 3};
  DocFigure figure = line_figure({kHostile, kHostile, {{kHostile, step}}, {{2, kHostile}}}, step);
  const DocTable table{kHostile, {kHostile, "n"}, {{kHostile, "5"}}};
  figure.table = table;
  DocSection part{.heading = kHostile, .paragraphs = {kHostile}, .remarks = {kHostile}};
  DocSection section{.heading = kHostile,
                     .paragraphs = {kHostile},
                     .remarks = {kHostile},
                     .figures = {figure},
                     .tables = {table},
                     .text_heading = kHostile,
                     .text = std::string(kHostile) + "\nsecond line",
                     .parts = {part}};
  return {kHostile, {kHostile}, {section, section}};
}

TEST(Html, EscapesWhateverFilesSay) {
  const std::string page = to_html(hostile_document());
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("\x01")));
  EXPECT_THAT(page, Not(HasSubstr("\xff")));
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;script&gt;alert(1)"));
  // Every quotation mark within an attribute is escaped, so that all of these stay whole.
  const std::regex label("aria-label=\"[^\"]*onerror=e[^\"]*\"");
  EXPECT_TRUE(std::regex_search(page, label));
  std::size_t scripts = 0;
  for (std::size_t at = 0; (at = page.find("<script", at)) != std::string::npos; ++at) {
    ++scripts;
  }
  EXPECT_EQ(scripts, 3U) << "the data of two figures, and the page's own";
}

TEST(Html, LoadsNothing) {
  const std::string page = to_html(hostile_document());
  EXPECT_THAT(page, HasSubstr("Content-Security-Policy\" content=\"default-src 'none';"));
  for (const char* const outside :
       {"src=\"", "@import", "url(http", "<link", "<iframe", "href=\"http"}) {
    EXPECT_THAT(page, Not(HasSubstr(outside))) << outside;
  }
}

TEST(Html, HasATableUnderEveryPicture) {
  const std::string page = to_html(hostile_document());
  const std::regex picture("<svg role=\"img\" aria-label=\"");
  const std::regex table("<summary>Table: ");
  const auto count = [&](const std::regex& what) {
    return std::distance(std::sregex_iterator(page.begin(), page.end(), what),
                         std::sregex_iterator());
  };
  EXPECT_EQ(count(picture), 2);
  EXPECT_EQ(count(table), 2);
}

TEST(Markdown, EscapesWhateverFilesSay) {
  Document document = hostile_document();
  document.sections[0].text = "```\n<b>";  // within a fence, nothing is interpreted
  document.sections[1].text = "";
  document.sections[0].tables[0].rows[0][0] = "a|b\nc";
  const std::string text = to_markdown(document);
  EXPECT_THAT(text, Not(HasSubstr("<img")));
  EXPECT_THAT(text, HasSubstr("a\\|b c |"));
  EXPECT_THAT(text, HasSubstr("````\n```\n<b>\n````"));
}

TEST(Document, ShowsWhatReordersText) {
  Document document;
  document.title =
      "a\xE2\x80\xAE"
      "b\xE2\x80\xA8\x1b";
  document.sections = {{.heading = "h", .text_heading = "t", .text = "x\xE2\x80\xAE\n"}};
  for (const std::string& page : {to_html(document), to_markdown(document)}) {
    EXPECT_THAT(page, Not(HasSubstr("\xE2\x80\xAE")));
    EXPECT_THAT(page, Not(HasSubstr("\xE2\x80\xA8")));
    EXPECT_THAT(page, HasSubstr("\\u202e"));
  }
}

TEST(LineFigure, SaysWhatThePictureShows) {
  const std::vector<double> step = {10, 20, 30};
  const std::vector<double> loss = {3, 1, 2};
  const std::vector<double> none(3, NAN);
  const DocFigure figure =
      line_figure({"Loss", "nats", {{"training", loss}, {"validation", none}}}, step);
  EXPECT_EQ(figure.summary, "Loss over steps 10 to 30, in nats. training: from 1 to 3, at last 2.");
  EXPECT_EQ(figure.table.head, (std::vector<std::string>{"step", "training"}));
  EXPECT_EQ(figure.table.rows.back(), (std::vector<std::string>{"largest", "3"}));
  EXPECT_EQ(figure.data, R"([{"name":"training","x":[10,20,30],"y":[3.0,1.0,2.0]}])");
  EXPECT_TRUE(line_figure({"Loss", "nats", {{"validation", none}}}, step).svg.empty());
  EXPECT_TRUE(line_figure({"Loss", "nats", {{"x", {}}}}, {}).svg.empty());
}

TEST(LineFigure, NumbersAreShort) {
  EXPECT_EQ(number_text(NAN), "-");
  EXPECT_EQ(number_text(1234567), "1234567");
  EXPECT_EQ(number_text(0.00012345678), "0.00012346");
  EXPECT_EQ(number_text(1e300), "1e+300");
}

}  // namespace
}  // namespace trireme
