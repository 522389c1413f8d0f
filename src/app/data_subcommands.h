// The subcommands of `trireme data`, one function each, and what they share. Private to src/app.
#pragma once

#include <memory>
#include <string>

#include "io/data/dataset_writing.h"
#include "src/app/data_command.h"
#include "src/base/progress_bar.h"

namespace trireme {

void add_data_pack(CommandLine& data, const CommunicatorAccess& communicator);
void add_data_list(CommandLine& data);
void add_data_info(CommandLine& data);
void add_data_verify(CommandLine& data, const CommunicatorAccess& communicator, int& exit_code);
void add_data_stage(CommandLine& data, const CommunicatorAccess& communicator);
void add_data_convert(CommandLine& data, const CommunicatorAccess& communicator);

// The ranks of a communicator, as io/data knows them. Packing takes its time: no deadline.
RankGroup rank_group(Communicator& comm);

// A bar on a terminal, else a line every ten seconds; on rank 0 only. Copies share the bar.
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

// What a pack or a conversion says at its end.
void print_pack_reports(const std::vector<PackReport>& reports, bool json);

}  // namespace trireme
