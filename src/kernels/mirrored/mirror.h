// Mirror copies the host memory behind views to a device, lets the views refer to the copies, and
// copies back what a kernel may have changed. Views that overlap on the host overlap on the device.
// Bytes around each copy must stay unchanged. One per call of a kernel; one thread.
#pragma once

#include <cstddef>
#include <vector>

#include "src/device/device.h"
#include "src/device/stream.h"

namespace trireme {

// Says where arrays lie in device memory: at multiples of 16 bytes, so that kernels use wide
// accesses, or as far from one as on the host.
enum class Placement { aligned, as_on_host };

class Mirror {
 public:
  // stream: of the device, and the one on which the kernel runs. It outlives the mirror.
  Mirror(Stream& stream, Placement placement) : stream_(stream), placement_(placement) {}
  ~Mirror();
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  // The view must live until upload().
  void add(View& view);
  void add(ConstView& view);
  void upload();
  // Waits for the kernel. Throws DeviceError if it failed, wrote outside its views, or changed what
  // it should only read.
  void download();

 private:
  struct Range {
    std::byte* host = nullptr;
    std::size_t bytes = 0;
    bool changes = false;
    std::byte* device = nullptr;  // of the allocation
    std::size_t offset = 0;       // of the copy within it
    std::size_t held() const;     // bytes of the allocation
  };
  void add(const void* data, std::int64_t bytes, bool changes);
  void merge();
  std::byte* copy_of(const void* data) const;
  void write(const Range& range);
  void read(const Range& range);
  View on_device(const Range& range) const;

  Stream& stream_;
  Placement placement_;
  std::vector<View*> views_;
  std::vector<ConstView*> const_views_;
  std::vector<Range> ranges_;
};

}  // namespace trireme
