#include "src/plan/published_runs.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/shortened.h"

namespace trireme {
namespace {

constexpr std::size_t kMostRows = 100'000;
constexpr std::size_t kMostColumns = 200;
constexpr double kMostNumber = 1e9;                          // of seconds and GiB
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // which spreadsheets write
// Larger numbers are slips: no model, machine or batch is that large.
constexpr std::int64_t kMostBatch = 1'000'000'000;
constexpr std::int64_t kMostCsvWidth = 1 << 20;  // of hidden and ffn
constexpr std::int64_t kMostCsvVocab = 1 << 24;
constexpr std::int64_t kMostCsvLayers = 1 << 14;
constexpr std::int64_t kMostCsvHeads = 1 << 14;
constexpr std::int64_t kMostCsvSequence = 1 << 24;
constexpr std::int64_t kMostCsvRanks = 1 << 20;
constexpr std::int64_t kMostCsvStages = 512;
constexpr std::int64_t kMostCsvVirtualStages = 1024;  // whose schedule is simulated in a second
constexpr std::int64_t kMostCsvMicroBatch = 1 << 12;

[[noreturn]] void fail(const std::string& origin, int line, const std::string& what) {
  throw DataError(fmt::format("{}:{}: {}", origin, line, what));
}

std::string shown(std::string_view text) { return printable(shortened(std::string(text))); }

// CsvReader reads records of RFC 4180: fields in quotes may hold commas, line ends and "".
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  bool at_end() const { return at_ >= text_.size(); }
  int line() const { return line_; }

  std::vector<std::string> record() {
    std::vector<std::string> fields(1);
    const int start = line_;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        quoted(fields.back(), start);
      } else if (c == ',') {
        fields.emplace_back();
        if (fields.size() > kMostColumns) {
          fail(origin_, start, fmt::format("more than {} fields", kMostColumns));
        }
      } else if (c == '\n') {
        ++at_;
        ++line_;
        break;
      } else if (c != '\r') {
        fields.back() += c;
      }
    }
    return fields;
  }

 private:
  // Reads from the opening quote to the closing one, where the loop of record() goes on.
  void quoted(std::string& field, int start) {
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') {
          return;
        }
        ++at_;
      }
      line_ += c == '\n' ? 1 : 0;
      field += c;
    }
    fail(origin_, start, "a quoted field does not end");
  }

  std::string_view text_;
  const std::string& origin_;
  std::size_t at_ = 0;
  int line_ = 1;
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool has(const std::string& text, std::string_view part) {
  return lower(text).find(part) != std::string::npos;
}

// Row is a record with the names of its columns.
class Row {
 public:
  Row(const std::map<std::string, std::size_t>& columns, std::vector<std::string> fields,
      const std::string& origin, int line)
      : columns_(columns), fields_(std::move(fields)), origin_(origin), line_(line) {}

  const std::string& text(const std::string& column) const { return fields_[columns_.at(column)]; }
  [[noreturn]] void refuse(const std::string& column, const std::string& wanted) const {
    fail(origin_, line_, fmt::format("{}: '{}' is not {}", column, shown(text(column)), wanted));
  }
  // Returns a number above 0; 0 for an empty field, which says that it was not published.
  double number(const std::string& column) const {
    const std::string& field = text(column);
    if (field.empty()) {
      return 0;
    }
    double value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error != std::errc() || end != field.data() + field.size() || !(value > 0) ||
        value > kMostNumber) {
      refuse(column, "a number above 0 (empty: not published)");
    }
    return value;
  }
  std::int64_t integer(const std::string& column, std::int64_t if_empty, std::int64_t most) const {
    const std::string& field = text(column);
    if (field.empty()) {
      return if_empty;
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error != std::errc() || end != field.data() + field.size() || value < 1 || value > most) {
      refuse(column, fmt::format("an integer from 1 to {} (empty: not published)", most));
    }
    return value;
  }
  // Returns the field in lower case without what follows in brackets, as in "none (8K stage)".
  std::string word(const std::string& column) const {
    std::string field = lower(text(column));
    field.resize(std::min(field.size(), field.find('(')));
    while (field.ends_with(' ')) {
      field.pop_back();
    }
    return field;
  }
  // Returns what the field's word stands for. The first choice is that of empty fields.
  template <class T>
  T choice(const std::string& column,
           const std::vector<std::pair<std::string_view, T>>& choices) const {
    std::vector<std::string_view> names;
    for (const auto& [name, value] : choices) {
      if (name == word(column)) {
        return value;
      }
      names.push_back(name);
    }
    refuse(column,
           fmt::format("empty or one of {}", fmt::join(names.begin() + 1, names.end(), ", ")));
  }
  int line() const { return line_; }

 private:
  const std::map<std::string, std::size_t>& columns_;
  std::vector<std::string> fields_;
  const std::string& origin_;
  int line_;
};

int zero_of(const Row& row) {
  return row.choice<int>("zero", {{"", 0}, {"0", 0}, {"1", 1}, {"2", 2}, {"3", 3}, {"fsdp", 3}});
}

PlanRecompute recompute_of(const Row& row) {
  return row.choice<PlanRecompute>("recompute", {{"", PlanRecompute::none},
                                                 {"none", PlanRecompute::none},
                                                 {"selective", PlanRecompute::selective},
                                                 {"full", PlanRecompute::full}});
}

// What the products are computed in, by the names that tables have for it.
enum class Products { bits16, bits8, bits4 };
Products products_of(const Row& row) {
  return row.choice<Products>("precision", {{"", Products::bits16},
                                            {"bf16", Products::bits16},
                                            {"fp16", Products::bits16},
                                            {"fp16/bf16", Products::bits16},
                                            {"amp_bf16", Products::bits16},
                                            {"amp_fp16", Products::bits16},
                                            {"fp8", Products::bits8},
                                            {"amp_fp8", Products::bits8},
                                            {"fp8_tensorwise", Products::bits8},
                                            {"fp8-cs", Products::bits8},
                                            {"mxfp8", Products::bits8},
                                            {"fp4", Products::bits4},
                                            {"nvfp4", Products::bits4}});
}

PlanModel model_of(const Row& row) {
  PlanModel model;
  model.layers = row.integer("layers", 0, kMostCsvLayers);
  model.hidden = row.integer("hidden", 0, kMostCsvWidth);
  model.heads = row.integer("heads", 0, kMostCsvHeads);
  model.kv_heads = row.integer("kv_heads", model.heads, kMostCsvHeads);
  model.ffn = row.integer("ffn", 0, kMostCsvWidth);
  model.vocab = row.integer("vocab", 0, kMostCsvVocab);
  model.sequence = row.integer("seq_len", 0, kMostCsvSequence);
  model.head_dim = model.heads > 0 ? model.hidden / model.heads : 0;
  model.gated = has(row.text("model"), "llama");
  model.tied = !model.gated;
  return model;
}

PlanLayout layout_of(const Row& row) {
  PlanLayout layout;
  layout.dp = row.integer("dp", 0, kMostCsvRanks);
  layout.tp = row.integer("tp", 0, kMostCsvRanks);
  layout.pp = row.integer("pp", 0, kMostCsvStages);
  layout.virtual_stages = row.integer("vpp", 1, kMostCsvStages);
  layout.micro_batch = row.integer("mbs", 0, kMostCsvMicroBatch);
  layout.zero = zero_of(row);
  layout.recompute = recompute_of(row);
  layout.sequence_parallel = row.choice<bool>("seq_par", {{"", false}, {"0", false}, {"1", true}});
  layout.schedule = layout.pp > 1 && layout.virtual_stages > 1 ? PipelineSchedule::interleaved
                                                               : PipelineSchedule::one_f_one_b;
  return layout;
}

// Returns why a configuration of this program cannot express the run.
std::string fault_of(const Row& row, const PublishedRun& run) {
  const PlanModel& m = run.model;
  if (has(run.model_name, "mamba")) {
    return "not a transformer";
  }
  if (m.layers == 0 || m.hidden == 0 || m.heads == 0 || m.ffn == 0 || m.vocab == 0 ||
      m.sequence == 0 || m.head_dim == 0 || m.kv_heads == 0) {
    return "the model's shape is not published";
  }
  if (row.integer("cp", 1, kMostCsvRanks) > 1 || row.integer("ep", 1, kMostCsvRanks) > 1) {
    return "context or expert parallelism";
  }
  if (run.seconds <= 0) {
    return "no step time";
  }
  const PlanLayout& l = run.layout;
  const std::int64_t batch = row.integer("gbs", 0, kMostBatch);
  // Only the first three rounds of longer schedules are simulated, which are then even.
  const auto is_uneven = [&] {
    const std::int64_t micro_batches = batch / (l.dp * l.micro_batch);
    return l.schedule == PipelineSchedule::interleaved && micro_batches < 3 * l.pp &&
           micro_batches % l.pp != 0;
  };
  if (l.micro_batch == 0 || batch == 0 || l.dp == 0 || l.tp == 0 || l.pp == 0) {
    return "no micro-batch or layout";
  }
  if (batch < l.dp * l.micro_batch) {
    return "the global batch is smaller than dp micro-batches";
  }
  if (m.heads % l.tp != 0) {
    return "tp does not divide the heads";
  }
  if (l.pp * l.virtual_stages > std::min(2 * m.layers, kMostCsvVirtualStages)) {
    return "more stages than halves of layers, or than 1024";
  }
  if (is_uneven()) {
    return "an interleaved schedule of uneven rounds";
  }
  if (products_of(row) == Products::bits4) {
    return "precision";
  }
  return setting_of(run).cluster.empty() ? "no cluster file for its GPUs" : "";
}

// Refuses a layout of another number of GPUs than the row's. Experts share the ranks of dp.
void check_gpus(const Row& row, const PublishedRun& run) {
  const PlanLayout& l = run.layout;
  const std::int64_t context = row.integer("cp", 1, kMostCsvRanks);
  // Each is at most 2^20, so that the products of dp and tp, and of pp and cp, are far from
  // overflow.
  const double ranks = static_cast<double>(l.dp * l.tp) * static_cast<double>(l.pp * context);
  if (run.gpus > 0 && ranks > 0 && ranks != static_cast<double>(run.gpus)) {
    row.refuse("gpus", fmt::format("dp x tp x pp x cp, which is {:.0f}", ranks));
  }
}

PublishedRun run_of(const Row& row) {
  PublishedRun run;
  run.line = row.line();
  run.source = row.text("source_id");
  run.model_name = row.text("model");
  run.gpu_type = row.text("gpu_type");
  run.gpus = row.integer("gpus", 0, kMostBatch);
  run.seconds = row.number("iter_time_s");
  run.memory_gib = row.number("mem_gb");
  run.model = model_of(row);
  run.layout = layout_of(row);
  run.precision = products_of(row) == Products::bits8 ? PlanPrecision::fp8 : PlanPrecision::bf16;
  check_gpus(row, run);
  run.why_not = fault_of(row, run);
  if (run.why_not.empty()) {
    const std::int64_t unit = run.layout.dp * run.layout.micro_batch;
    run.layout.micro_batches = row.integer("gbs", 0, kMostBatch) / unit;
    run.model.dropout =
        run.source == "sc21_t1" || run.source == "vtrain_multi" || run.source == "bigscience_a100";
    const bool megatron = run.source == "mbridge" || run.source == "dgxc_2025";
    run.layout.sequence_parallel = run.layout.tp > 1 && (run.layout.sequence_parallel || megatron);
  }
  return run;
}

constexpr const char* kColumns[] = {"source_id", "model",     "hidden", "heads",       "kv_heads",
                                    "ffn",       "layers",    "vocab",  "seq_len",     "tp",
                                    "cp",        "pp",        "vpp",    "dp",          "ep",
                                    "zero",      "recompute", "gpus",   "seq_par",     "gpu_type",
                                    "precision", "gbs",       "mbs",    "iter_time_s", "mem_gb"};

}  // namespace

std::vector<PublishedRun> parse_published_runs(std::string_view csv, const std::string& origin) {
  if (csv.starts_with(kByteOrderMark)) {
    csv.remove_prefix(kByteOrderMark.size());
  }
  CsvReader reader(csv, origin);
  std::map<std::string, std::size_t> columns;
  const std::vector<std::string> names = reader.record();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!columns.emplace(names[i], i).second) {
      fail(origin, 1, fmt::format("two columns are called '{}'", shown(names[i])));
    }
  }
  for (const char* column : kColumns) {
    if (!columns.contains(column)) {
      fail(origin, 1, fmt::format("there is no column '{}'", column));
    }
  }
  std::vector<PublishedRun> runs;
  while (!reader.at_end()) {
    const int line = reader.line();
    std::vector<std::string> fields = reader.record();
    if (fields.size() == 1 && fields.front().empty()) {
      continue;
    }
    if (fields.size() != names.size()) {
      fail(origin, line,
           fmt::format("{} fields, but the header has {}", fields.size(), names.size()));
    }
    if (runs.size() == kMostRows) {
      fail(origin, line, fmt::format("more than {} runs", kMostRows));
    }
    runs.push_back(run_of(Row(columns, std::move(fields), origin, line)));
  }
  if (runs.empty()) {
    fail(origin, reader.line(), "no run follows the names of the columns");
  }
  return runs;
}

}  // namespace trireme
