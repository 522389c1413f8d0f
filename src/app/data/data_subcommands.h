// Declares the subcommands of `trireme data` and their common parts. Private to src/app.
#pragma once

#include <memory>
#include <string>

#include "io/data/dataset_writing.h"
#include "src/app/data/data_command.h"
#include "src/base/progress_bar.h"

namespace trireme {

void add_data_pack(CommandLine& data, const CommunicatorAccess& communicator,
                   const AccessSource& access);
void add_data_list(CommandLine& data);
void add_data_info(CommandLine& data, const AccessSource& access);
void add_data_verify(CommandLine& data, const CommunicatorAccess& communicator,
                     const AccessSource& access, int& exit_code);
void add_data_stage(CommandLine& data, const CommunicatorAccess& communicator,
                    const AccessSource& access);
void add_data_convert(CommandLine& data, const CommunicatorAccess& communicator,
                      const AccessSource& access);
void add_data_encrypt(CommandLine& data, const CommunicatorAccess& communicator,
                      const AccessSource& access);
void add_data_decrypt(CommandLine& data, const CommunicatorAccess& communicator,
                      const AccessSource& access);

// Wraps a communicator for io/data. Its deadline is a month, since packing may take long.
RankGroup rank_group(Communicator& comm);

// Shows a progress bar on a terminal, and otherwise a line every ten seconds; on rank 0 only.
// Copies share the bar.
class ByteProgress {
 public:
  ByteProgress(std::string label, int rank) : label_(std::move(label)), shown_(rank == 0) {}
  void operator()(std::int64_t done, std::int64_t total);

 private:
  std::string label_;
  bool shown_;
  std::int64_t total_ = -1;
  std::shared_ptr<ProgressBar> bar_;
};

// Prints the final reports of a pack or conversion.
void print_pack_reports(const std::vector<PackReport>& reports, bool json);

}  // namespace trireme
