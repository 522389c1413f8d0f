#include "io/h5/h5_handle.h"

#include "io/h5/h5_check.h"

namespace trireme {

static_assert(sizeof(hid_t) == sizeof(std::int64_t));

void H5HandleTraits::close(Handle handle) { (void)H5Idec_ref(handle); }

}  // namespace trireme
