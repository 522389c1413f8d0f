// Reads any bytes as an HDF5 file in a process of its own: as another program's tokens and
// documents, as `data convert` does, and as the corpus file `shard`, whose entry is given here. A
// file has a real path, because libhdf5 does not open /proc/self/fd/N of a file in memory
// (memfd_create): it asks for the name behind the link, which does not exist.
#pragma once

#include <string_view>

namespace trireme {

// Hdf5Outcome says how far the reading came. If all are false, the input was refused with an error.
struct Hdf5Outcome {
  bool tokens_read = false;     // as another program's tokens, from the first to the last
  bool shard_accepted = false;  // as the shard
  bool contained = false;       // libhdf5 crashed or looped, and a guard ended the process with 65
};

// Prints what the other process wrote and ends this one if the other ended in any other way.
Hdf5Outcome read_hdf5_input(std::string_view input);

}  // namespace trireme
