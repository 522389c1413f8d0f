// A Document is the content of a report: text, tables and pictures, from which HTML or Markdown is
// made. Values; all texts may hold any bytes and are escaped by to_html() and to_markdown().
#pragma once

#include <string>
#include <vector>

namespace trireme {

struct DocTable {
  std::string caption = {};
  std::vector<std::string> head = {};
  std::vector<std::vector<std::string>> rows = {};  // each as long as head
};

struct DocFigure {
  std::string heading = {};
  std::string summary = {};  // what the picture shows, for those who do not see it
  std::string svg = {};      // made by src/figures
  std::string data = {};     // JSON for zooming (line_figure.h); empty if there is no zoom
  DocTable table = {};       // the numbers behind the picture
};

struct DocSection {
  std::string heading = {};
  std::vector<std::string> paragraphs = {};
  std::vector<std::string> remarks = {};  // what is missing, and why
  std::vector<DocFigure> figures = {};
  std::vector<DocTable> tables = {};
  std::string text_heading = {};  // of `text`
  std::string text = {};          // shown as it is, for example a configuration
  std::vector<DocSection> parts = {};
};

struct Document {
  std::string title;
  std::vector<std::string> paragraphs;
  std::vector<DocSection> sections;
};

// Returns a page that needs no other file and no network. It forbids itself to load anything and to
// run any script but its own (Content-Security-Policy).
std::string to_html(const Document& document);
std::string to_markdown(const Document& document);

}  // namespace trireme
