// Stands in for NVTX: the names of a thread's open ranges are kept (src/device/sim/ranges.h).
#pragma once

extern "C" {

int nvtxRangePushA(const char* message);
int nvtxRangePop();
}
