// MemorySlot: a file in the node's memory, mapped, that holds one shard and is used again for the
// next: its pages are there already, so that a snapshot costs one copy. Owned by MemoryTarget; one
// thread at a time writes to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "io/checkpoint/staging.h"

namespace trireme {

class MemorySlot {
 public:
  MemorySlot() = default;
  // Makes the file, takes its memory and touches it. IoError if there is not enough.
  MemorySlot(const std::filesystem::path& file, std::int64_t bytes, int threads);

  // Renames the file, to which the mapping stays. False if somebody has removed it.
  bool move_to(const std::filesystem::path& file);
  // Somebody else has renamed it.
  void found_at(std::filesystem::path file) { file_ = std::move(file); }
  // Gives the memory back, and the file.
  void remove();

  // [round_up(bytes(), kDataAlignment)]
  std::byte* data() const { return memory_.get().data; }
  std::int64_t bytes() const { return bytes_; }  // of the file
  const std::filesystem::path& file() const { return file_; }
  explicit operator bool() const { return bytes_ > 0; }

 private:
  std::filesystem::path file_;
  std::int64_t bytes_ = 0;
  UniqueHandle<MappedMemoryTraits> memory_;
};

}  // namespace trireme
