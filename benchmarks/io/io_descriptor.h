// IoDescriptor is the open file of an engine: it adds to File (src/base/file.h) files that several
// ranks create at once, and direct I/O. Owns the descriptor; for one thread.
#pragma once

#include "benchmarks/io/io_engine.h"
#include "src/base/file.h"

namespace trireme {

class IoDescriptor {
 public:
  void open(const IoOpening& how);
  int fd() const { return handle_.get(); }
  bool writes() const { return writes_; }
  // Takes the result of a system call, which is the number of bytes moved or a negative errno, and
  // shortens the transfer to what is left. Throws if the call failed or a file ended too early.
  void advance(IoTransfer& transfer, std::int64_t result) const;
  void sync();
  void close();

 private:
  UniqueHandle<FileDescriptorTraits> handle_;
  std::string path_;
  bool writes_ = false;
  bool direct_ = false;
};

}  // namespace trireme
