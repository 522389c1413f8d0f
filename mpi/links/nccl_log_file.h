// NcclLogFile is a file in memory to which NCCL writes its log in this process, so that the program
// can read how NCCL connects ranks. NCCL's log is one per process, and so is this file. Any thread
// may call it.
#pragma once

#include <mutex>
#include <string>

#include "mpi/links/nccl_log_parser.h"

namespace trireme {

class NcclLogFile {
 public:
  // Returns the file. The first call sets NCCL's variables for it in the environment of this
  // process and must come before the first call of NCCL. If the user has directed NCCL's log
  // somewhere else, it stays there.
  static NcclLogFile& of_process();
  ~NcclLogFile();
  NcclLogFile(const NcclLogFile&) = delete;
  NcclLogFile& operator=(const NcclLogFile&) = delete;

  // Returns why the log cannot be read, and what to do; empty if it can.
  const std::string& trouble() const { return trouble_; }
  // Returns what was logged since the last call.
  NcclConnections read();

 private:
  NcclLogFile();
  void direct_log();
  std::string new_text();

  int file_ = -1;
  std::string trouble_;
  std::mutex mutex_;  // guards the members below
  std::int64_t at_ = 0;
  NcclLogParser parser_;
};

}  // namespace trireme
