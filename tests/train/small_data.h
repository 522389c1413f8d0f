// Small packed datasets and the texts of logs, for tests of runs.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "io/data/packer.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/log.h"

namespace trireme {

// Packs the documents, one file each, as bytes into folder / name, with the id 256 at the end of
// each document. Makes one shard, unless shard_bytes is small.
inline std::filesystem::path pack_documents(const std::filesystem::path& folder,
                                            const std::string& name,
                                            const std::vector<std::string>& documents,
                                            std::int64_t shard_bytes = std::int64_t{1} << 20) {
  const std::filesystem::path in = folder / (name + "_in");
  std::filesystem::create_directories(in);
  for (std::size_t i = 0; i < documents.size(); ++i) {
    std::ofstream(in / fmt::format("{:03}.txt", i), std::ios::binary) << documents[i];
  }
  PackOptions options;
  options.inputs = {in.string()};
  options.out = folder / name;
  options.shard_bytes = shard_bytes;
  pack(options, {});
  return folder / name;
}

// Returns a text of `bytes` letters from which a model can learn.
inline std::string lesson(std::int64_t bytes) {
  const std::string words = "one and one is two and two and two is four ";
  std::string text;
  while (static_cast<std::int64_t>(text.size()) < bytes) {
    text += words.substr(text.size() % 7);
  }
  text.resize(static_cast<std::size_t>(bytes));
  return text;
}

// Returns the log of a rank below `folder`.
inline std::string log_text(const std::filesystem::path& folder, int rank = 0) {
  return read_file(log_file(folder, rank));
}

}  // namespace trireme
