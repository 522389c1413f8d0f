// UniqueHandle<Traits> is the only owner of a handle of a C library. Traits provides `using Handle
// = ...; static Handle none(); static void close(Handle);`, where close() must not throw.
#pragma once

#include <utility>

namespace trireme {

template <class Traits>
class UniqueHandle {
 public:
  using Handle = typename Traits::Handle;

  UniqueHandle() = default;
  explicit UniqueHandle(Handle handle) : handle_(handle) {}
  UniqueHandle(UniqueHandle&& other) noexcept
      : handle_(std::exchange(other.handle_, Traits::none())) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) {
      reset(std::exchange(other.handle_, Traits::none()));
    }
    return *this;
  }
  UniqueHandle(const UniqueHandle&) = delete;
  UniqueHandle& operator=(const UniqueHandle&) = delete;
  ~UniqueHandle() { reset(); }

  Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != Traits::none(); }
  Handle release() { return std::exchange(handle_, Traits::none()); }
  void reset(Handle handle = Traits::none()) {
    const Handle old = std::exchange(handle_, handle);
    if (old != Traits::none()) {
      Traits::close(old);
    }
  }

 private:
  Handle handle_ = Traits::none();
};

}  // namespace trireme
