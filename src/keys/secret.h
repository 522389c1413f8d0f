// Secret holds the bytes of a key in memory of its own, which the system does not swap out (as far
// as `ulimit -l` allows), leaves out of core files and does not pass to child processes. Its
// destructor wipes them. Move-only; several threads may read it.
#pragma once

#include <cstddef>
#include <string_view>

#include "src/base/unique_handle.h"

namespace trireme {

class Secret {
 public:
  // Holds zeros. Throws ResourceError for lack of memory.
  explicit Secret(std::size_t bytes);
  // Copies the bytes; the caller wipes the source.
  explicit Secret(std::string_view bytes);

  unsigned char* data() { return memory_.get().data; }
  const unsigned char* data() const { return memory_.get().data; }
  std::size_t bytes() const { return bytes_; }
  std::string_view view() const { return {reinterpret_cast<const char*>(data()), bytes_}; }
  // Returns whether the system promised to keep the memory out of swap.
  bool is_locked() const { return is_locked_; }

 private:
  struct Pages {
    unsigned char* data = nullptr;
    std::size_t bytes = 0;
    friend bool operator==(const Pages&, const Pages&) = default;
  };
  struct PagesTraits {
    using Handle = Pages;
    static Handle none() { return {}; }
    static void close(Handle pages);
  };

  UniqueHandle<PagesTraits> memory_;
  std::size_t bytes_;
  bool is_locked_;
};

// Wipes memory in a way that the compiler does not leave out.
void wipe(void* data, std::size_t bytes);

// Fills memory from the random generator for keys (OpenSSL's, seeded by the system).
void fill_random(unsigned char* data, std::size_t bytes);

}  // namespace trireme
