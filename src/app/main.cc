// trireme trains transformer models on clusters. Each subcommand has a file of its own.
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>
#include <sys/prctl.h>
#include <unistd.h>

#include "benchmarks/command/bench_command.h"
#include "mpi/rank_fault.h"
#include "mpi/session/bundled_mpi.h"
#include "mpi/session/hang_up.h"
#include "src/app/checkpoint/ckpt_command.h"
#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"
#include "src/app/command/help_text.h"
#include "src/app/command/standard_output.h"
#include "src/app/command/version.h"
#include "src/app/data/data_command.h"
#include "src/app/data/tokenizer_command.h"
#include "src/app/evidence/audit_command.h"
#include "src/app/evidence/erase_command.h"
#include "src/app/evidence/policy_command.h"
#include "src/app/evidence/release_command.h"
#include "src/app/evidence/verify_command.h"
#include "src/app/keys/keys_command.h"
#include "src/app/launch/launch_command.h"
#include "src/app/launch/status_command.h"
#include "src/app/model/eval_command.h"
#include "src/app/model/export_command.h"
#include "src/app/model/generate_command.h"
#include "src/app/model/import_command.h"
#include "src/app/model/sparsify_command.h"
#include "src/app/plan/plan_command.h"
#include "src/app/registry/registry_command.h"
#include "src/app/run/config_command.h"
#include "src/app/run/fault_sites.h"
#include "src/app/run/log_command.h"
#include "src/app/run/plot_command.h"
#include "src/app/run/report_page_command.h"
#include "src/app/run/trace_command.h"
#include "src/app/run/train_command.h"
#include "src/app/site/completion_command.h"
#include "src/app/site/doctor_command.h"
#include "src/app/site/health_command.h"
#include "src/app/site/man_command.h"
#include "src/app/site/slurm_command.h"
#include "src/app/study/accept_command.h"
#include "src/app/study/archive_command.h"
#include "src/app/study/compare_command.h"
#include "src/app/study/history_command.h"
#include "src/app/study/scale_command.h"
#include "src/base/address_space.h"
#include "src/base/file.h"
#include "src/base/floating_point.h"
#include "src/base/log.h"
#include "src/base/out_of_memory.h"
#include "src/base/printable.h"
#include "src/base/shortened.h"
#include "src/base/thread_error.h"
#include "src/device/cuda_device.h"

namespace trireme {
namespace {

void add_commands(CommandLine& cli, AppContext& context) {
  cli.footer(
      "Examples:\n"
      "  trireme data pack --out data/text --validation-fraction 0.1 docs/ src/\n"
      "  trireme launch --ranks-per-node 2 -- train configs/run/demo.yaml \\\n"
      "    data.train=data/text/train data.validation=data/text/validation \\\n"
      "    run.dir=runs/first\n"
      "  trireme generate --checkpoint runs/first/checkpoints --prompt 'The '\n"
      "'trireme COMMAND --help' describes a command, and 'trireme man COMMAND' prints its manual "
      "page.");
  add_version_flags(cli, context.exit_code);
  add_train_command(cli, context);
  add_eval_command(cli, context);
  add_generate_command(cli, context);
  const AccessSource access = [&context]() -> const Access& { return context.access(); };
  add_data_command(
      cli, [&context]() -> Communicator& { return context.session().world(); }, access,
      context.exit_code);
  add_tokenizer_command(cli);
  add_ckpt_command(cli, context.exit_code, context.audit, access);
  add_bench_command(cli, context);
  add_compare_command(cli, context.exit_code, access);
  add_history_command(cli, context.exit_code, access);
  add_scale_command(cli, context.exit_code, access);
  add_accept_command(cli, context.exit_code, [&context](const auto& arguments) {
    return measure_problem(context, arguments);
  });
  add_archive_command(cli);
  add_config_command(cli, context);
  add_plan_command(cli, context);
  add_plot_command(cli, access);
  add_report_page_command(cli, access);
  add_log_command(cli, access);
  add_import_command(cli, context);
  add_export_command(cli, context);
  add_sparsify_command(cli, context);
  add_trace_command(cli, access);
  add_audit_command(cli, context.exit_code);
  add_verify_command(cli, access, context.exit_code);
  add_keys_command(cli, access);
  add_erase_command(cli, context.audit, access);
  add_policy_command(cli, access, context.exit_code);
  add_release_command(cli);
  add_registry_command(cli, access, context.exit_code);
  add_launch_command(cli, context);
  add_status_command(cli, access);
  add_slurm_command(cli, access);
  add_doctor_command(cli, context);
  add_health_command(cli, context.exit_code);
  add_man_command(cli);
  add_completion_command(cli);
}

// After a requested save, every rank ends with the same code. mpirun reports a failed job if
// processes end with a code, but nothing if a rank aborts after all ranks have arrived here.
void leave_if_stopped(AppContext& context) {
  if (context.exit_code == static_cast<int>(ExitCode::requeue) && context.has_session() &&
      context.session().launcher() == Launcher::mpirun) {
    context.session().world().barrier().wait();
    std::fflush(nullptr);
    context.session().abort(ExitCode::requeue);
  }
}

[[noreturn]] void end_with_system_error(AppContext& context, const std::system_error& error) {
  const std::string reason = error.code().message();
  // fmt::print() throws if its stream accepts less than it got.
  for (const auto& [stream, name] : {std::pair(stdout, "output"), std::pair(stderr, "error")}) {
    if (std::ferror(stream) != 0) {
      end_with(context, ExitCode::io, "io",
               fmt::format("cannot write to standard {}: {}", name, reason));
    }
  }
  if (error.code() == std::errc::resource_unavailable_try_again) {  // from std::thread
    end_with(context, ExitCode::device, "memory", no_thread("", error));
  }
  end_with(context, ExitCode::device, "internal", error.what());
}

// Returns what is said about a std::bad_alloc, with advice that the command can follow.
std::string out_of_memory_in(const AppContext& context) {
  const std::string_view phase = context.status.phase;
  const bool is_for_files = phase == "import" || phase == "export" || phase == "sparsify";
  return std::string(is_for_files ? kOutOfMemoryForFiles : kOutOfMemory);
}

int run(CommandLine& cli, AppContext& context, const std::vector<std::string>& arguments) {
  // This `try` is within the lifetime of the MPI session, so that an error aborts the job instead
  // of waiting for ranks that never arrive.
  try {
    context.arguments = arguments;
    context.audit.know_options(cli.option_names(arguments));
    context.audit.begin_if_audited(arguments, environ);
    cli.parse(arguments);
    flush_standard_output();
    context.audit.end(context.exit_code);
    leave_if_stopped(context);
    return context.exit_code;
  } catch (const UsageError& error) {
    std::fputs(fmt::format("{}\n", printable_lines(shortened(error.what()))).c_str(), stderr);
    context.audit.end(static_cast<int>(error.exit_code()), "usage", error.what());
    return static_cast<int>(error.exit_code());
  } catch (const RankFault& fault) {
    end_with(context, fault.exit_code(), fault.kind(), fault.what(), fault.rank);
  } catch (const Error& error) {
    end_with(context, error.exit_code(), error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    end_with(context, ExitCode::device, "memory", out_of_memory_in(context));
  } catch (const std::filesystem::filesystem_error& error) {
    try {
      throw_as_error(error);
    } catch (const Error& known) {
      end_with(context, known.exit_code(), known.kind(), known.what());
    }
  } catch (const std::system_error& error) {
    end_with_system_error(context, error);
  } catch (const nlohmann::json::exception& error) {
    end_with(context, ExitCode::bad_data, "data",
             fmt::format("a JSON file does not have the expected content: {}", error.what()));
  } catch (const std::exception& error) {
    end_with(context, ExitCode::device, "internal", error.what());
  }
}

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) {
  trireme::use_one_heap_if_limited();
  trireme::end_with_words_without_memory();
  trireme::open_standard_streams();
  trireme::use_bundled_mpi();
  trireme::take_hang_up_from_ucx();
  // A launch starts its ranks through /proc/self/exe, and they would be called "exe".
  (void)::prctl(PR_SET_NAME, "trireme");
  trireme::restore_floating_point();
  trireme::cuda::ask_for_queues();
  // A write beyond `ulimit -f` then fails with EFBIG, which is reported like any other I/O error.
  std::signal(SIGXFSZ, SIG_IGN);
  trireme::AppContext context;
  context.fault_sites = trireme::fault_sites();
  trireme::CommandLine cli("Train transformer models on clusters of CPU and GPU nodes, over MPI",
                           "trireme");
  trireme::add_commands(cli, context);
  if (argc == 1) {
    std::fputs(trireme::help_text(cli).c_str(), stdout);
    return static_cast<int>(trireme::ExitCode::usage);
  }
  return trireme::run(cli, context, {argv + 1, argv + argc});
}
