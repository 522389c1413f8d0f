// Mirror copies the host memory behind views to a CUDA device, lets the views refer to the copies,
// and copies back what a kernel may have changed. Views that overlap on the host overlap on the
// device. Bytes around each copy must stay unchanged.
#pragma once

#include <cstddef>
#include <vector>

#include "src/device/device.h"
#include "src/device/stream.h"

namespace trireme::testing {

// Where arrays lie in device memory: at multiples of 16 bytes, so that kernels use wide accesses,
// or as far from one as on the host.
enum class Placement { aligned, as_on_host };

class Mirror {
 public:
  explicit Mirror(Placement placement) : placement_(placement) {}
  ~Mirror();
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  // The view must live until upload().
  void add(View& view);
  void add(ConstView& view);
  void upload();
  // Waits for the kernels. Throws InternalError if they failed or wrote outside their views.
  void download();

  // Returns the stream of the device on which kernels run.
  static Stream& stream();

 private:
  struct Range {
    std::byte* host = nullptr;
    std::size_t bytes = 0;
    bool changes = false;
    std::byte* device = nullptr;  // of the allocation
    std::size_t offset = 0;       // of the copy within it
  };
  void add(const void* data, std::int64_t bytes, bool changes);
  void merge();
  std::byte* copy_of(const void* data) const;
  void transfer(const Range& range, bool to_device);

  Placement placement_;
  std::vector<View*> views_;
  std::vector<ConstView*> const_views_;
  std::vector<Range> ranges_;
};

}  // namespace trireme::testing
