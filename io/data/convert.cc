#include "io/data/convert.h"

#include <algorithm>
#include <sstream>

#include "io/h5/h5_file.h"
#include "src/base/digest.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::int64_t kReadTokens = std::int64_t{1} << 20;

// A range of a foreign file's tokens: what becomes one shard.
struct ForeignRange {
  InputFile file;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

bool is_hdf5(const InputFile& file) {
  return file.path.ends_with(".h5") || file.path.ends_with(".hdf5");
}

std::int64_t tokens_in(const InputFile& file, const std::string& name) {
  const auto info = H5File::open_to_read(file.path).dataset(name);
  if (!info || !info->integers || info->extents.size() != 1) {
    throw DataError(
        fmt::format("{}: no one-dimensional dataset of integers named {}: name it with "
                    "--tokens (h5ls {} lists what there is)",
                    file.path, name, file.path));
  }
  return info->elements();
}

// "tokens tokens ...", in the order of the files: what rank 0 found.
std::vector<std::int64_t> parse_counts(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::int64_t> counts;
  for (std::int64_t count = 0; stream >> count;) {
    counts.push_back(count);
  }
  return counts;
}

// Where documents end within the range, in tokens from the file's start; the range's end is last.
std::vector<std::int64_t> document_ends(const H5File& file, const ForeignRange& range,
                                        const std::string& name) {
  std::vector<std::int64_t> ends;
  const std::int64_t last = range.first + range.count;
  if (const auto info = file.dataset(name)) {
    if (!info->integers || info->extents.size() != 1) {
      throw DataError(
          fmt::format("{}: {} is not one-dimensional integers", file.path().string(), name));
    }
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(info->elements()));
    file.read_integers(name, 0, info->elements(), offsets.data());
    if (!std::ranges::is_sorted(offsets)) {
      throw DataError(fmt::format("{}: {} does not rise", file.path().string(), name));
    }
    std::ranges::copy_if(offsets, std::back_inserter(ends),
                         [&](std::int64_t end) { return end > range.first && end < last; });
  }
  ends.push_back(last);
  return ends;
}

// Appends tokens [at, end) of the file.
void copy_tokens(const H5File& file, const ConvertOptions& options, std::int64_t at,
                 std::int64_t end, ShardWriter& writer) {
  std::vector<std::int64_t> wide(static_cast<std::size_t>(std::min(kReadTokens, end - at)));
  std::vector<std::int32_t> tokens(wide.size());
  while (at < end) {
    const std::int64_t count = std::min(kReadTokens, end - at);
    file.read_integers(options.tokens, at, count, wide.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      if (wide[i] < 0 || wide[i] >= options.vocab) {
        throw DataError(
            fmt::format("{}: {}[{}] is {}, outside the vocabulary of {}: give the right "
                        "--vocab",
                        file.path().string(), options.tokens, at + static_cast<std::int64_t>(i),
                        wide[i], options.vocab));
      }
      tokens[i] = static_cast<std::int32_t>(wide[i]);
    }
    writer.append({tokens.data(), static_cast<std::size_t>(count)});
    at += count;
  }
}

PackCounts convert_range(const ConvertOptions& options, const ForeignRange& range,
                         ShardWriter& writer, const std::function<void(std::int64_t)>& read) {
  const H5File file = H5File::open_to_read(range.file.path);
  std::int64_t at = range.first;
  for (const std::int64_t end : document_ends(file, range, options.offsets)) {
    copy_tokens(file, options, at, end, writer);
    writer.end_document();
    read((end - at) * writer.format().token_bytes);
    at = end;
  }
  return {.files = range.first == 0 ? 1 : 0};
}

std::string fingerprint(const ConvertOptions& options, const ForeignRange& range) {
  return sha256_hex(fmt::format(
      "convert {} {} {} {} {} {} {} {} {} {} {} {}", kDatasetVersion, options.tokens,
      options.offsets, options.vocab, options.tokenizer, options.source, options.alignment_bytes,
      range.file.name, range.file.bytes, range.file.modified_ns, range.first, range.count));
}

// Files keep their order; a file above the size of a shard is cut.
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
  job.format.tokenizer_digest =
      sha256_hex(fmt::format("foreign tokenizer {} {}", options.tokenizer, options.vocab));
  job.format.source = options.source;
  job.format.alignment_bytes = options.alignment_bytes;
  job.progress = options.progress;
  return job;
}

}  // namespace

PackReport convert(const ConvertOptions& options, const RankGroup& ranks) {
  if (options.vocab < 1 || options.vocab >= std::int64_t{1} << 31 ||
      options.shard_bytes < std::int64_t{1} << 16) {
    throw ConfigError("convert needs a vocabulary from 1 to 2^31 - 1 and shards of at least 64K");
  }
  std::string listed;
  std::string counted;
  if (ranks.rank == 0) {
    std::vector<InputFile> files = find_input_files(options.inputs, {}, options.out);
    std::erase_if(files, [](const InputFile& file) { return !is_hdf5(file); });
    listed = input_files_text(files);
    for (const InputFile& file : files) {
      counted += fmt::format("{} ", tokens_in(file, options.tokens));
    }
  }
  const std::vector<InputFile> files = parse_input_files(ranks.broadcast(listed));
  const std::vector<std::int64_t> counts = parse_counts(ranks.broadcast(counted));
  DatasetJob job = empty_job(options);
  const std::int64_t shard_tokens = options.shard_bytes / job.format.token_bytes;
  for (const ForeignRange& range : plan(files, counts, shard_tokens)) {
    job.shards.push_back({fingerprint(options, range),
                          sha256_hex(fmt::format("{} {}", range.file.inode, range.file.changed_ns)),
                          range.count * job.format.token_bytes,
                          [&options, range](ShardWriter& writer, const auto& read) {
                            return convert_range(options, range, writer, read);
                          }});
  }
  return write_dataset(job, ranks);
}

}  // namespace trireme
