// trireme: trains transformer models on clusters of CPU and GPU nodes. One subcommand, one file.
#include <exception>

#include <CLI/CLI.hpp>

#include "src/app/app_context.h"
#include "src/app/bench_command.h"
#include "src/app/ckpt_command.h"
#include "src/app/config_command.h"
#include "src/app/data_command.h"
#include "src/app/eval_command.h"
#include "src/app/generate_command.h"
#include "src/app/plot_command.h"
#include "src/app/train_command.h"
#include "src/app/version.h"
#include "src/base/log.h"

namespace trireme {
namespace {

void add_commands(CLI::App& cli, AppContext& context) {
  cli.require_subcommand(0, 1);
  cli.footer(
      "Example:\n"
      "  trireme data pack --out data/text docs/ src/\n"
      "  mpirun -n 2 trireme train configs/run/demo.yaml\n"
      "  trireme generate --checkpoint runs/demo/checkpoints --prompt 'The '\n"
      "Exit codes and file formats: docs/.");
  add_version_flags(cli, context.exit_code);
  add_train_command(cli, context);
  add_eval_command(cli, context);
  add_generate_command(cli, context);
  add_data_command(
      cli, [&context]() -> Communicator& { return context.session().world(); }, context.exit_code);
  add_ckpt_command(cli, context.exit_code);
  add_bench_command(cli, context);
  add_config_command(cli, context);
  add_plot_command(cli);
}

int run(CLI::App& cli, AppContext& context, int argc, char** argv) {
  // The one `try`: inside the life of the MPI session, so that an error aborts the job instead of
  // waiting for ranks that never come.
  try {
    cli.parse(argc, argv);
    return context.exit_code;
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = error.get_exit_code() == 0;
    cli.exit(error);
    return asked_for_help ? 0 : static_cast<int>(ExitCode::usage);
  } catch (const Error& error) {
    end_with(context, error.exit_code(), error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    end_with(context, ExitCode::device, "memory",
             "out of memory: take a smaller micro-batch or model, or fewer ranks on this host");
  } catch (const std::exception& error) {
    end_with(context, ExitCode::device, "internal", error.what());
  }
}

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) {
  trireme::open_standard_streams();
  trireme::AppContext context;
  CLI::App cli("Trains transformer models on bare metal: CPU and GPU nodes, MPI, HDF5.", "trireme");
  trireme::add_commands(cli, context);
  if (argc == 1) {
    std::fputs(cli.help().c_str(), stdout);
    return static_cast<int>(trireme::ExitCode::usage);
  }
  return trireme::run(cli, context, argc, argv);
}
