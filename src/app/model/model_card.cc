#include "src/app/model/model_card.h"

#include <cctype>
#include <cmath>
#include <limits>
#include <tuple>

#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"
#include "src/evidence/bundle.h"
#include "src/nn/model_size.h"
#include "src/report/columns.h"
#include "src/train/run/model_fingerprint.h"
#include "src/train/saving/base_weights.h"
#include "src/train/saving/first_weights.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void add(std::vector<ModelCard::Fact>& facts, const char* name, const json& object,
         const char* field) {
  if (object.contains(field) && object[field] != "") {
    facts.push_back({name, text_of(object[field])});
  }
}

void describe_model(const Manifest& manifest, ModelCard& card) {
  const ModelConfig model = model_from_fingerprint(*manifest.meta.config);
  const json& imported = manifest.meta.extra->contains("imported")
                             ? object_field(*manifest.meta.extra, "imported")
                             : json::object();
  card.model = {{"family", std::string(family_name(model.family))},
                {"parameters", std::to_string(parameter_count(model))},
                {"layers", std::to_string(model.layers)},
                {"hidden size", std::to_string(model.hidden)},
                {"heads", std::to_string(model.heads)},
                {"heads of keys and values", std::to_string(model.kv_heads)},
                {"token ids", std::to_string(model.vocab)},
                {"context", std::to_string(model.context)}};
  add(card.model, "imported as", imported, "model_type");
  if (manifest.meta.label) {
    card.model.push_back({"label", manifest.meta.label->to_string()});
  }
}

void describe_training(const StepFolder& step, ModelCard& card) {
  const CheckpointMeta& meta = step.manifest->meta;
  card.training = {{"checkpoint", fs::absolute(step.path).lexically_normal().string()},
                   {"manifest, SHA-256", step.manifest_sha256},
                   {"step", std::to_string(meta.step)},
                   {"samples", std::to_string(meta.samples)},
                   {"saved", step.manifest->created}};
  add(card.training, "precision", *meta.config, "train.precision");
  add(card.training, "digest of the data", *meta.config, "data.digest");
  add(card.training, "tokens per sample", *meta.config, "data.sequence");
  add(card.training, "tokenizer", *meta.extra, "tokenizer");
  add(card.training, "digest of the tokenizer", *meta.extra, "tokenizer_digest");
}

// Adds the checkpoints and datasets that the signed provenance names. Returns false if there is
// none. Whether it is genuine is up to `trireme verify`.
bool add_stated_sources(const StepFolder& step, ModelCard& card) {
  const fs::path path = step.path / kProvenanceName;
  std::error_code code;
  if (!fs::exists(path, code)) {
    return false;
  }
  const std::vector<SignedStatement> statements =
      parse_bundle(read_file(path, kMostBundleBytes), path.string(), {});
  for (const Material& material : statements.at(0).provenance.materials) {
    const fs::path place = path_of_uri(material.uri);
    if (place.filename() == kManifestName || material.name == "parent") {
      card.sources.push_back({material.name,
                              place.empty() ? material.uri : place.parent_path().string(),
                              material.sha256});
    } else if (material.name == kInputMaterial) {
      card.sources.push_back({material.name, place.string(), material.sha256});
    }
  }
  return true;
}

// Adds those that the manifest records.
void add_recorded_sources(const Manifest& manifest, ModelCard& card) {
  const json& extra = *manifest.meta.extra;
  for (const auto& [field, folder, digest] : {std::tuple(kBaseOfAdapters, "base", "base_sha256"),
                                              {kBaseOfModules, "base", "base_sha256"},
                                              {kFirstWeightsField, "base", "base_sha256"},
                                              {"pruned", "parent", "parent_sha256"}}) {
    if (extra.contains(field)) {
      const json& record = object_field(extra, field);
      card.sources.push_back({"base", text_field(record, folder), text_field(record, digest)});
    }
  }
  std::vector<ModelCard::Fact> teacher;
  add(teacher, "teacher", *manifest.meta.config, "distill.teacher");
  for (const ModelCard::Fact& fact : teacher) {
    card.sources.push_back({fact.name, "", fact.value});
  }
}

// Adds the last figures up to the step from the metrics of the run, if the step lies in one.
void add_results(const StepFolder& step, const TextReader& reader, ModelCard& card) {
  const fs::path metrics =
      fs::absolute(step.path).lexically_normal().parent_path().parent_path() / "metrics.jsonl";
  std::error_code code;
  if (!fs::exists(metrics, code)) {
    return;
  }
  const RunColumns columns = parse_columns(reader.read(metrics));
  card.metrics = metrics;
  card.damaged_metrics = columns.damaged;
  for (const auto& [name, values] : columns.fields) {
    const bool is_wanted =
        name == "loss" || name == "tokens" || name == "val_loss" || name.starts_with("val_losses/");
    double last = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t i = 0; is_wanted && i < values.size(); ++i) {
      if (columns.step[i] <= static_cast<double>(step.step) && std::isfinite(values[i])) {
        last = values[i];
      }
    }
    if (std::isfinite(last)) {
      card.results.push_back({name, fmt::format("{:.10g}", last)});
    }
  }
}

// Returns text for a cell of a table.
std::string cell(const std::string& text) {
  std::string safe;
  for (const char c : printable(text)) {
    safe += c == '|' || c == '<' || c == '`' || c == '*' || c == '[' ? std::string("\\") + c
                                                                     : std::string(1, c);
  }
  return safe;
}

std::string table_of(const char* title, const std::vector<ModelCard::Fact>& facts) {
  if (facts.empty()) {
    return "";
  }
  std::string text = fmt::format("\n## {}\n\n| what | value |\n|---|---|\n", title);
  for (const ModelCard::Fact& fact : facts) {
    text += fmt::format("| {} | {} |\n", cell(fact.name), cell(fact.value));
  }
  return text;
}

}  // namespace

ModelCard model_card_of(const StepFolder& step, const TextReader& reader) {
  ModelCard card;
  card.title = fs::absolute(step.path).lexically_normal().filename().string();
  try {
    describe_model(*step.manifest, card);
    describe_training(step, card);
    card.is_stated = add_stated_sources(step, card);
    if (!card.is_stated) {
      add_recorded_sources(*step.manifest, card);
    }
  } catch (const DataError& error) {
    throw data_error_in(step.path.string(), error);
  }
  add_results(step, reader, card);
  return card;
}

std::map<std::string, std::string> tags_of(const ModelCard& card) {
  std::map<std::string, std::string> tags;
  const auto tag = [&](const std::string& name, const std::string& value) {
    std::string plain = "trireme.";
    for (const char c : name) {
      const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.';
      plain += is_plain ? c : '_';
    }
    std::string& held = tags[plain];
    held += (held.empty() ? "" : "; ") + value;
  };
  for (const std::vector<ModelCard::Fact>* const facts : {&card.model, &card.training}) {
    for (const ModelCard::Fact& fact : *facts) {
      tag(fact.name, fact.value);
    }
  }
  for (const ModelCard::Source& source : card.sources) {
    tag("from." + source.role, fmt::format("{} sha256:{}", source.place, source.sha256));
  }
  return tags;
}

std::string markdown_of(const ModelCard& card) {
  std::string text = fmt::format("---\nlibrary_name: transformers\ntags: [trireme]\n---\n\n# {}\n",
                                 cell(card.title));
  text += table_of("Model", card.model);
  text += table_of("Training", card.training);
  if (!card.sources.empty()) {
    text += fmt::format("\n## Made from\n\n{}\n\n| what | where | SHA-256 |\n|---|---|---|\n",
                        card.is_stated ? "As the provenance beside the checkpoint states, which "
                                         "`trireme verify` checks:"
                                       : "As the checkpoint records, which nobody has signed:");
    for (const ModelCard::Source& source : card.sources) {
      text += fmt::format("| {} | {} | {} |\n", cell(source.role), cell(source.place),
                          cell(source.sha256));
    }
  }
  text += table_of("Results", card.results);
  return text;
}

}  // namespace trireme
