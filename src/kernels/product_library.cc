#include "src/kernels/product_library.h"

#include <dnnl.h>
#include <fmt/core.h>

namespace trireme {

std::string product_library() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace trireme
