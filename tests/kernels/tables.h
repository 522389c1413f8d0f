// Lists the tables that this program tests, and the schedules in which their results must have the
// same bits. Defined by host_tables.cc or device_tables.cc, whichever is linked.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/kernels/kernels.h"

namespace trireme::testing {

// Returns the tables to compare with the reference. Views of the host's memory are passed to all of
// them.
std::vector<const Kernels*> tables_under_test();
// Returns the same tables after the reference.
std::vector<const Kernels*> tables_and_reference();
// Returns the types of activations that these tables take.
std::vector<DType> activation_types();
// Returns those of them that have 2 bytes.
std::vector<DType> half_types();
// Returns whether the table's kernels run on a device and cannot throw what they find there.
bool runs_on_device(const Kernels& table);

// Returns a stream of what the tables compute on: the host with `threads` threads, or a device.
Stream test_stream(int threads);
// Calls run(name, stream) for each schedule: numbers of threads on the host, and orders of threads,
// warps and blocks on a simulated device.
void each_schedule(const std::function<void(const std::string&, Stream&)>& run);

// Returns the table's name as GoogleTest permits it.
std::string test_name(const Kernels& table);

}  // namespace trireme::testing
