// Makes pipes to and from child processes. Both ends close at exec unless they are duplicated.
#pragma once

#include "src/base/file.h"

namespace trireme {

struct Pipe {
  UniqueHandle<FileDescriptorTraits> read;
  UniqueHandle<FileDescriptorTraits> write;
};

// Throws IoError if the process has no file descriptors left.
Pipe make_pipe();

}  // namespace trireme
