// MemorySlot is a mapped file in the node's memory that holds one shard and is reused for later
// ones. Its pages stay allocated, so that a snapshot costs one copy. It is owned by MemoryTarget;
// only one thread at a time writes to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "io/checkpoint/staging.h"

namespace trireme {

class MemorySlot {
 public:
  MemorySlot() = default;
  // Creates the file, allocates its memory and touches it. Throws IoError if there is not enough
  // memory.
  MemorySlot(const std::filesystem::path& file, std::int64_t bytes, int threads);

  // Renames the file; the mapping remains valid. Returns false if the file was removed.
  bool move_to(const std::filesystem::path& file);
  // Sets the file's name after its folder was renamed.
  void found_at(std::filesystem::path file) { file_ = std::move(file); }
  // Frees the memory and deletes the file.
  void remove();

  // Shape [round_up(bytes(), kDataAlignment)].
  std::byte* data() const { return memory_.get().data; }
  std::int64_t bytes() const { return bytes_; }  // size of the file
  const std::filesystem::path& file() const { return file_; }
  explicit operator bool() const { return bytes_ > 0; }

 private:
  std::filesystem::path file_;
  std::int64_t bytes_ = 0;
  UniqueHandle<MappedMemoryTraits> memory_;
};

}  // namespace trireme
