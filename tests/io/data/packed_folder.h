// What tests look up in a folder that was packed.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "io/data/tokenizer.h"
#include "tests/io/data/data_fixture.h"

namespace trireme {

// Returns the documents of a dataset of bytes, cut at its document offsets.
inline std::vector<std::string> documents_of_folder(const fs::path& folder) {
  const Dataset dataset = Dataset::open(folder);
  const auto tokenizer = make_tokenizer("bytes");
  const std::vector<std::int32_t> tokens = all_tokens(dataset);
  std::vector<std::string> texts;
  std::size_t before = 0;
  for (const ShardEntry& shard : dataset.manifest().shards) {
    std::vector<std::uint64_t> ends(static_cast<std::size_t>(shard.n_docs + 1));
    File::open_to_read(folder / shard.path)
        .read_exactly_at(shard.docs_offset, ends.data(), shard.docs_bytes);
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
      texts.push_back(
          tokenizer->decode(std::span(tokens).subspan(before + ends[i], ends[i + 1] - ends[i])));
    }
    before += static_cast<std::size_t>(shard.n_tokens);
  }
  return texts;
}

// Returns the contents of every file in a folder, by name.
inline std::map<std::string, std::string> files_of_folder(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      files[entry.path().lexically_relative(folder)] = read_file(entry.path());
    }
  }
  return files;
}

}  // namespace trireme
