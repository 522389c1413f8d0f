#include "io/data/convert.h"

#include <algorithm>
#include <optional>
#include <span>
#include <sstream>

#include "io/data/document_ends.h"
#include "io/data/tokenizer.h"
#include "io/h5/crash_guard.h"
#include "io/h5/h5_file.h"
#include "src/base/digest.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::int64_t kReadTokens = std::int64_t{1} << 20;

// ForeignRange is a range of tokens in a foreign file that becomes one shard.
struct ForeignRange {
  InputFile file;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

bool is_hdf5(const InputFile& file) {
  return file.path.ends_with(".h5") || file.path.ends_with(".hdf5");
}

std::string offsets_name(const ConvertOptions& options) {
  return options.offsets.empty() ? "/doc_offsets" : options.offsets;
}

// ForeignFile is a foreign file, open for reading.
class ForeignFile {
 public:
  ForeignFile(const InputFile& listed, const ConvertOptions& options)
      : listed_(listed),
        guard_(listed.path),
        file_(H5File::open_to_read(listed.path)),
        tokens_(required(options.tokens, "--tokens")),
        offsets_(options.offsets.empty() && !file_.has_link(offsets_name(options))
                     ? std::nullopt
                     : std::optional(required(offsets_name(options), "--offsets"))) {}

  H5Integers& tokens() { return tokens_; }
  // Returns null if the file has no offsets and is therefore one document.
  H5Integers* offsets() { return offsets_ ? &*offsets_ : nullptr; }

  // Tokens of a file that is being written or truncated meanwhile would be lost without an error.
  void check_unchanged() const {
    if (!is_unchanged(listed_)) {
      throw DataError(
          fmt::format("{}: the file changed while it was converted; run the command again when the "
                      "file is complete",
                      listed_.path));
    }
  }

 private:
  H5Integers required(const std::string& name, const char* option) const {
    std::optional<H5Integers> found = file_.integers(name);
    if (!found) {
      throw DataError(fmt::format(
          "{}: there is no HDF5 dataset {}: name another one with {} (`h5ls -r {}` lists them)",
          listed_.path, name, option, listed_.path));
    }
    return std::move(*found);
  }

  const InputFile& listed_;
  CrashGuard guard_;
  H5File file_;
  H5Integers tokens_;
  std::optional<H5Integers> offsets_;
};

// Returns the number of tokens in a file. Throws before any shard is written if tokens or documents
// would be lost.
std::int64_t check_file(const InputFile& listed, const ConvertOptions& options) {
  ForeignFile file(listed, options);
  if (H5Integers* const offsets = file.offsets()) {
    check_offsets(*offsets, file.tokens().size(),
                  fmt::format("{}: {}", listed.path, offsets_name(options)));
  }
  return file.tokens().size();
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
void read_tokens(H5Integers& from, const InputFile& file, const ConvertOptions& options,
                 std::int64_t at, std::span<std::int32_t> to) {
  std::vector<std::int64_t> wide(to.size());
  from.read(at, static_cast<std::int64_t>(to.size()), wide.data());
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (wide[i] < 0 || wide[i] >= options.vocab) {
      throw DataError(fmt::format(
          "{}: {}[{}] is {}, outside the vocabulary of {}: give the right --vocab", file.path,
          options.tokens, at + static_cast<std::int64_t>(i), integer_text(wide[i]), options.vocab));
    }
    to[i] = static_cast<std::int32_t>(wide[i]);
  }
}

PackCounts convert_range(const ConvertOptions& options, const ForeignRange& range,
                         ShardWriter& writer, const std::function<void(std::int64_t)>& read) {
  ForeignFile file(range.file, options);
  file.check_unchanged();
  DocumentEnds ends(file.offsets(), range.first);
  const std::int64_t last = range.first + range.count;
  std::vector<std::int32_t> tokens;
  for (std::int64_t begin = range.first; begin < last;) {
    const std::int64_t stop = std::min(begin + kReadTokens, last);
    tokens.resize(static_cast<std::size_t>(stop - begin));
    read_tokens(file.tokens(), range.file, options, begin, tokens);
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
  file.check_unchanged();
  return {.files = range.first == 0 ? 1 : 0};
}

std::string fingerprint(const ConvertOptions& options, const ForeignRange& range) {
  return sha256_hex(fmt::format("convert {} {} {} {} {} {} {} {} {} {} {} {}", kDatasetVersion,
                                options.tokens, offsets_name(options), options.vocab,
                                options.tokenizer, options.source, options.alignment_bytes,
                                range.file.name, range.file.bytes, range.file.modified_ns,
                                range.first, range.count));
}

// Keeps the order of the files and cuts those that are larger than a shard.
std::vector<ForeignRange> plan(const std::vector<InputFile>& files,
                               const std::vector<std::int64_t>& counts, std::int64_t shard_tokens) {
  std::vector<ForeignRange> ranges;
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::int64_t first = 0; first < counts[i]; first += shard_tokens) {
      ranges.push_back({files[i], first, std::min(shard_tokens, counts[i] - first)});
    }
  }
  return ranges;
}

DatasetJob empty_job(const ConvertOptions& options) {
  DatasetJob job;
  job.folder = options.out;
  job.format.token_bytes = options.vocab <= 65536 ? 2 : 4;
  job.format.vocab = options.vocab;
  job.format.tokenizer = options.tokenizer;
  job.format.tokenizer_digest = foreign_tokenizer_digest(options.tokenizer, options.vocab);
  job.format.source = options.source;
  job.label = options.label;
  job.format.alignment_bytes = options.alignment_bytes;
  job.progress = options.progress;
  job.make_key = options.make_key;
  return job;
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
  std::string counted;
  if (ranks.rank == 0) {
    InputFiles inputs = find_input_files(options.inputs, {}, options.out);
    std::vector<InputFile>& files = inputs.files;
    std::erase_if(files, [](const InputFile& file) { return !is_hdf5(file); });
    if (files.empty()) {
      throw DataError("none of the inputs is an HDF5 file: their names must end in .h5 or .hdf5");
    }
    listed = input_files_text(inputs);
    for (const InputFile& file : files) {
      counted += fmt::format("{} ", check_file(file, options));
    }
  }
  const InputFiles inputs = parse_input_files(ranks.broadcast(listed));
  const std::vector<std::int64_t> counts = parse_counts(ranks.broadcast(counted));
  DatasetJob job = empty_job(options);
  job.empty_because =
      fmt::format("{} of {} is empty", options.tokens,
                  inputs.files.size() == 1 ? inputs.files.front().path : "every input");
  const std::int64_t shard_tokens = options.shard_bytes / job.format.token_bytes;
  for (const ForeignRange& range : plan(inputs.files, counts, shard_tokens)) {
    job.shards.push_back({fingerprint(options, range),
                          sha256_hex(fmt::format("{} {}", range.file.inode, range.file.changed_ns)),
                          range.count * job.format.token_bytes,
                          [&options, range](ShardWriter& writer, const auto& read) {
                            return convert_range(options, range, writer, read);
                          }});
  }
  PackReport report = write_dataset(job, ranks);
  report.skipped_inputs = inputs.skipped;
  return report;
}

}  // namespace trireme
