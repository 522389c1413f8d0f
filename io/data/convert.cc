#include "io/data/convert.h"

#include <algorithm>
#include <optional>
#include <span>
#include <sstream>

#include <nlohmann/json.hpp>

#include "io/data/document_ends.h"
#include "io/data/foreign_file.h"
#include "io/data/label_file.h"
#include "io/data/tokenizer.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace {

constexpr std::int64_t kReadTokens = std::int64_t{1} << 20;

// ForeignRange is a range of tokens in a foreign file that becomes one shard.
struct ForeignRange {
  ForeignInput input;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

ForeignNames names_of(const ConvertOptions& options) { return {options.tokens, options.offsets}; }

// Tokens of a file that is being written or truncated meanwhile would be lost without an error.
void check_unchanged(const ForeignInput& input) {
  for (const InputFile* file : {&input.file, input.beside ? &*input.beside : nullptr}) {
    if (file != nullptr && !is_unchanged(*file)) {
      throw DataError(
          fmt::format("{}: the file changed while it was converted; run the command again when the "
                      "file is complete",
                      file->path));
    }
  }
}

// Returns the number of tokens in a file. Throws before any shard is written if tokens, documents
// or a loss mask would be lost.
std::int64_t check_file(const ForeignInput& input, const ConvertOptions& options) {
  const std::unique_ptr<ForeignFile> file = open_foreign_file(input, names_of(options));
  if (const std::string mask = file->loss_mask(); !mask.empty()) {
    throw DataError(fmt::format(
        "{} is a loss mask, which would be lost, so that a model would be trained on all tokens: "
        "pack the conversations again with `data pack --messages`, or convert tokens without a "
        "mask",
        mask));
  }
  file->check_documents();
  return file->tokens().size();
}

// Parses the token counts that rank 0 found, "count count ...", in the order of the files.
std::vector<std::int64_t> parse_counts(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::int64_t> counts;
  for (std::int64_t count = 0; stream >> count;) {
    counts.push_back(count);
  }
  return counts;
}

// Reads tokens [at, at + to.size()) of the file.
void read_tokens(ForeignFile& file, std::int64_t vocab, std::int64_t at,
                 std::span<std::int32_t> to) {
  std::vector<std::int64_t> wide(to.size());
  file.tokens().read(at, static_cast<std::int64_t>(to.size()), wide.data());
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (wide[i] < 0) {
      throw DataError(fmt::format("{} is {}: token ids are not negative",
                                  file.place_of(at + static_cast<std::int64_t>(i)), wide[i]));
    }
    if (wide[i] >= vocab) {
      throw DataError(fmt::format("{} is {}, outside the vocabulary of {}: give the right --vocab",
                                  file.place_of(at + static_cast<std::int64_t>(i)),
                                  integer_text(wide[i]), vocab));
    }
    to[i] = static_cast<std::int32_t>(wide[i]);
  }
}

PackCounts convert_range(const ConvertOptions& options, const ForeignRange& range,
                         ShardWriter& writer, const std::function<void(std::int64_t)>& read) {
  const std::unique_ptr<ForeignFile> file = open_foreign_file(range.input, names_of(options));
  check_unchanged(range.input);
  DocumentEnds ends(file->offsets(), range.first);
  const std::int64_t last = range.first + range.count;
  std::vector<std::int32_t> tokens;
  for (std::int64_t begin = range.first; begin < last;) {
    const std::int64_t stop = std::min(begin + kReadTokens, last);
    tokens.resize(static_cast<std::size_t>(stop - begin));
    read_tokens(*file, options.vocab, begin, tokens);
    for (std::int64_t at = begin; at < stop;) {
      const std::int64_t end = std::min(ends.next(), stop);
      writer.append(std::span(tokens).subspan(static_cast<std::size_t>(at - begin),
                                              static_cast<std::size_t>(end - at)));
      if (end == ends.next()) {
        writer.end_document();
        ends.pass(end);
      }
      at = end;
    }
    read((stop - begin) * writer.format().token_bytes);
    begin = stop;
  }
  check_unchanged(range.input);
  return {.files = range.first == 0 ? 1 : 0};
}

std::string fingerprint(const ConvertOptions& options, const ForeignRange& range) {
  const InputFile& file = range.input.file;
  std::string text =
      fmt::format("convert {} {} {} {} {} {} {} {} {} {} {} {}", kDatasetVersion, options.tokens,
                  options.offsets.empty() ? "/doc_offsets" : options.offsets, options.vocab,
                  options.tokenizer, options.source, options.alignment_bytes, file.name, file.bytes,
                  file.modified_ns, range.first, range.count);
  if (const auto& beside = range.input.beside) {
    text += fmt::format(" {} {} {}", beside->name, beside->bytes, beside->modified_ns);
  }
  return sha256_hex(text);
}

std::string restart_fingerprint(const ForeignInput& input) {
  std::string text = fmt::format("{} {}", input.file.inode, input.file.changed_ns);
  if (input.beside) {
    text += fmt::format(" {} {}", input.beside->inode, input.beside->changed_ns);
  }
  return sha256_hex(text);
}

// Keeps the order of the files and cuts those that are larger than a shard.
std::vector<ForeignRange> plan(const std::vector<ForeignInput>& inputs,
                               const std::vector<std::int64_t>& counts, std::int64_t shard_tokens) {
  std::vector<ForeignRange> ranges;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::int64_t first = 0; first < counts[i]; first += shard_tokens) {
      ranges.push_back({inputs[i], first, std::min(shard_tokens, counts[i] - first)});
    }
  }
  return ranges;
}

// Returns the join of the labels beside the files and that of the options, as a manifest has it.
std::string joined_label(const ConvertOptions& options, const std::vector<ForeignInput>& inputs) {
  std::optional<Label> all = options.label;
  for (const ForeignInput& input : inputs) {
    for (const std::string& place : places_of_label(input)) {
      all = join(all, label_beside(place), options.classifications);
    }
  }
  return all ? label_file_text(*all) : "{}";
}

DatasetJob empty_job(const ConvertOptions& options, const std::optional<Label>& label) {
  DatasetJob job;
  job.folder = options.out;
  job.format.token_bytes = options.vocab <= 65536 ? 2 : 4;
  job.format.vocab = options.vocab;
  job.format.tokenizer = options.tokenizer;
  job.format.tokenizer_digest = foreign_tokenizer_digest(options.tokenizer, options.vocab);
  job.format.source = options.source;
  job.label = label;
  job.format.alignment_bytes = options.alignment_bytes;
  job.progress = options.progress;
  job.make_key = options.make_key;
  return job;
}

// Throws ConfigError if --offsets names an HDF5 dataset, but a file of another format is read.
void check_names(const ConvertOptions& options, const std::vector<ForeignInput>& inputs) {
  for (const ForeignInput& input : inputs) {
    if (!options.offsets.empty() && !is_hdf5(input.file.path)) {
      throw ConfigError(fmt::format(
          "--offsets {} names a dataset of HDF5 files, and {} is none: convert it without the "
          "option",
          options.offsets, input.file.path));
    }
  }
}

}  // namespace

PackReport convert(const ConvertOptions& options, const RankGroup& ranks) {
  if (options.vocab < 1 || options.vocab >= std::int64_t{1} << 31) {
    throw ConfigError("--vocab must be from 1 to 2^31 - 1");
  }
  if (options.shard_bytes < std::int64_t{1} << 16) {
    throw ConfigError("--shard-size must be at least 64K");
  }
  if (options.tokens.empty()) {
    throw ConfigError("--tokens is empty: name the HDF5 dataset that holds the tokens");
  }
  std::string listed;
  std::string labels;
  if (ranks.rank == 0) {
    const InputFiles all = find_input_files(foreign_arguments(options.inputs), {}, options.out);
    const std::vector<ForeignInput> known = foreign_inputs(all.files);
    if (known.empty()) {
      throw DataError(
          "none of the inputs is a file of tokens that is known: their names must end in .h5 or "
          ".hdf5 (HDF5), .idx with a .bin file beside it (Megatron-LM), or .npy (NumPy)");
    }
    check_names(options, known);
    listed = input_files_text(all);
    labels = joined_label(options, known);
  }
  const InputFiles found = parse_input_files(ranks.broadcast(listed));
  const std::vector<ForeignInput> inputs = foreign_inputs(found.files);
  const std::optional<Label> label = label_of(parse_json(ranks.broadcast(labels)));
  if (options.admit) {
    options.admit(label);
  }
  std::string counted;
  if (ranks.rank == 0) {
    for (const ForeignInput& input : inputs) {
      counted += fmt::format("{} ", check_file(input, options));
    }
  }
  const std::vector<std::int64_t> counts = parse_counts(ranks.broadcast(counted));
  DatasetJob job = empty_job(options, label);
  job.empty_because =
      inputs.size() > 1 ? "every input is empty"
      : is_hdf5(inputs.front().file.path)
          ? fmt::format("{} of {} is empty", options.tokens, inputs.front().file.path)
          : fmt::format("{} has no token", inputs.front().file.path);
  const std::int64_t shard_tokens = options.shard_bytes / job.format.token_bytes;
  for (const ForeignRange& range : plan(inputs, counts, shard_tokens)) {
    job.shards.push_back({fingerprint(options, range), restart_fingerprint(range.input),
                          range.count * job.format.token_bytes,
                          [&options, range](ShardWriter& writer, const auto& read) {
                            return convert_range(options, range, writer, read);
                          }});
  }
  PackReport report = write_dataset(job, ranks);
  report.skipped_inputs = found.skipped;
  return report;
}

}  // namespace trireme
