// IoEngine moves the bytes of one file by one interface of the system. Owned by the benchmark; for
// one thread. A transfer is submitted with a slot, below depth(), whose buffer it may use until
// complete() returns that slot. Errors are thrown as for File (src/base/file.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace trireme {

enum class IoApi : std::uint8_t { posix, uring, hdf5 };
IoApi parse_io_api(std::string_view name);
// Returns IOR's name of an interface, such as "POSIX".
std::string_view ior_name_of(IoApi api);

struct IoOpening {
  std::string path;
  bool writes = false;     // creates the file if there is none
  bool direct = false;     // with O_DIRECT: places, sizes and buffers are multiples of 4 KiB
  std::int64_t bytes = 0;  // of the whole file, for HDF5
};

struct IoTransfer {
  std::int64_t offset = 0;
  char* data = nullptr;  // [bytes]
  std::int64_t bytes = 0;
};

class IoEngine {
 public:
  virtual ~IoEngine() = default;
  virtual void open(const IoOpening& how) = 0;
  // Returns how many transfers can be in flight.
  virtual int depth() const { return 1; }
  virtual void submit(int slot, const IoTransfer& transfer) = 0;
  // Waits for one of the submitted transfers, and returns its slot.
  virtual int complete() = 0;
  virtual void sync() = 0;
  virtual void close() = 0;
};

// depth: transfers in flight, which only io_uring can have. Throws PolicyError if this system does
// not allow io_uring.
std::unique_ptr<IoEngine> make_io_engine(IoApi api, int depth);
std::unique_ptr<IoEngine> make_uring_engine(int depth);

// Writes the file's data to the disk and drops it from the page cache of this node.
void evict_from_cache(const std::filesystem::path& path);

}  // namespace trireme
