// Declares the subcommands of `trireme data` and their common parts. Private to src/app.
#pragma once

#include <vector>

#include "io/data/dataset_writing.h"
#include "src/app/data/data_command.h"

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
void add_data_export(CommandLine& data, const CommunicatorAccess& communicator,
                     const AccessSource& access);
void add_data_report(CommandLine& data, const CommunicatorAccess& communicator,
                     const AccessSource& access);
void add_data_drift(CommandLine& data, const AccessSource& access, int& exit_code);
void add_data_encrypt(CommandLine& data, const CommunicatorAccess& communicator,
                      const AccessSource& access);
void add_data_decrypt(CommandLine& data, const CommunicatorAccess& communicator,
                      const AccessSource& access);

// Wraps a communicator for io/data. Its deadline is a month, since packing may take long.
RankGroup rank_group(Communicator& comm);

// Prints the final reports of a pack or conversion.
void print_pack_reports(const std::vector<PackReport>& reports, bool json);

}  // namespace trireme
