// ModelCard says about a checkpoint what those need to know who get the model: what it is, what it
// was made from, on which data, and how well it does. Everything is taken from the checkpoint, its
// provenance and the metrics of its run; what they do not say is left out.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/checkpoint/store.h"
#include "src/base/damaged_lines.h"
#include "src/base/run_text.h"

namespace trireme {

struct ModelCard {
  struct Fact {
    std::string name;
    std::string value;
  };
  // Another checkpoint or a dataset.
  struct Source {
    std::string role;    // "parent", "base", "teacher", "data.train", ...
    std::string place;   // its folder; may be empty
    std::string sha256;  // of its manifest
  };
  std::string title;
  std::vector<Fact> model;
  std::vector<Fact> training;
  std::vector<Source> sources;
  bool is_stated = false;         // whether the sources are those of the provenance
  std::vector<Fact> results;      // the last figures of the run up to the step
  std::filesystem::path metrics;  // the file with the metrics of the run; empty if there is none
  DamagedLines damaged_metrics;   // its lines that were ignored
};

// Reads what lies beside the step, too. reader: of the metrics, which may be encrypted. Throws
// DataError if the manifest describes no model.
ModelCard model_card_of(const StepFolder& step, const TextReader& reader);

// Returns the facts and sources as tags for MLflow, under names of letters, digits, "_" and ".".
std::map<std::string, std::string> tags_of(const ModelCard& card);

// Returns Markdown, with the front matter that Hugging Face's hub expects.
std::string markdown_of(const ModelCard& card);

}  // namespace trireme
