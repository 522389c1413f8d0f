// Reads any bytes as an HDF5 file. It must be refused with an error, or read within bounds; crashes
// and loops of libhdf5 must end in a guard. libhdf5 runs in a process of its own, so libFuzzer does
// not see what an input covers.
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/hdf5_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  (void)trireme::read_hdf5_input(trireme::text_of(data, bytes));
  return 0;
}
