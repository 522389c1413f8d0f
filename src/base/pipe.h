// A pipe to or from a child: both ends close at exec unless they are duplicated.
#pragma once

#include "src/base/file.h"

namespace trireme {

struct Pipe {
  UniqueHandle<FileDescriptorTraits> read;
  UniqueHandle<FileDescriptorTraits> write;
};

// IoError where the process has no descriptors left.
Pipe make_pipe();

}  // namespace trireme
