// Shared by the tests of datasets: a temporary folder, texts, small packed datasets, and a group of
// ranks that are threads.
#pragma once

#include <barrier>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "io/data/dataset.h"
#include "io/data/packer.h"
#include "src/base/file.h"
#include "src/base/philox.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace fs = std::filesystem;

class DataTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  // Writes `bytes` bytes of random letters and line ends, which may be many enough for several
  // digest blocks.
  void write_random_text(const std::string& name, std::int64_t bytes, std::uint64_t seed) const {
    std::string text;
    for (std::int64_t i = 0; i < bytes; ++i) {
      const std::uint64_t random = mix64(seed * 1'000'003 + static_cast<std::uint64_t>(i));
      text.push_back(random % 61 == 0 ? '\n' : static_cast<char>('a' + random % 26));
    }
    write(name, text);
  }
  PackOptions options(const std::string& in, const std::string& out) const {
    PackOptions options;
    options.inputs = {(folder_ / in).string()};
    options.out = folder_ / out;
    return options;
  }

  TempFolder temp_;
  fs::path folder_ = temp_.path();
};

// Runs fn once per rank, on threads that exchange texts as MPI ranks would. Rethrows the first
// exception when all ranks have ended, so no rank may wait for a failed one.
inline void run_ranks(int size, const std::function<void(const RankGroup&)>& fn) {
  std::barrier barrier(size);
  std::vector<std::string> texts(static_cast<std::size_t>(size));
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  const auto gather = [&](std::size_t rank, const std::string& text) {
    texts[rank] = text;
    barrier.arrive_and_wait();
    std::vector<std::string> all = texts;
    barrier.arrive_and_wait();
    return all;
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto self = static_cast<std::size_t>(rank);
      try {
        fn({.rank = rank,
            .size = size,
            .broadcast = [&, self](const std::string& text) { return gather(self, text)[0]; },
            .gather = [&, self](const std::string& text) { return gather(self, text); }});
      } catch (...) {
        errors[self] = std::current_exception();
        barrier.arrive_and_drop();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::exception_ptr& error : errors) {
    if (error) {
      std::rethrow_exception(error);
    }
  }
}

// Returns all tokens of a dataset, shard by shard.
inline std::vector<std::int32_t> all_tokens(const Dataset& dataset) {
  std::vector<std::int32_t> tokens;
  std::vector<std::byte> scratch;
  for (std::size_t shard = 0; shard < dataset.manifest().shards.size(); ++shard) {
    std::vector<std::int32_t> some(
        static_cast<std::size_t>(dataset.manifest().shards[shard].n_tokens));
    dataset.read({shard, 0, static_cast<std::int64_t>(some.size())}, some, scratch);
    tokens.insert(tokens.end(), some.begin(), some.end());
  }
  return tokens;
}

inline void flip_bit(const fs::path& path, std::int64_t at) {
  const File file = File::open_to_read(path);
  char byte = 0;
  file.read_exactly_at(at, &byte, 1);
  byte = static_cast<char>(byte ^ 1);
  fs::permissions(path, fs::perms::owner_all);
  File::open_to_update(path).write_at(at, &byte, 1);
}

}  // namespace trireme
