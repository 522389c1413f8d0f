// Implements the processes that a launch starts by itself: agents, the deputy and ranks.
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>

#include <unistd.h>

#include "slurm/agent/agent.h"
#include "slurm/agent/node_folder.h"
#include "slurm/launch/commands.h"
#include "slurm/launch/deputy.h"
#include "src/app/launch/launch_subcommands.h"
#include "src/base/error.h"

namespace trireme {
namespace {

struct CallerOptions {
  std::string launch;
  std::string node;
  std::string addresses;
  int port = 0;
  std::string ports;
  std::string health;
  std::string job;
  bool plain = false;
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_ca;

  TlsSetting tls() const { return {!plain, tls_certificate, tls_key, tls_ca}; }
};

std::vector<std::string> split(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> parts;
  std::string part;
  while (std::getline(stream, part, ',')) {
    parts.push_back(part);
  }
  return parts;
}

// Reads the secret from the first line of stdin. As an argument, other users of the machine could
// see it.
std::string read_secret() {
  constexpr std::size_t kDigits = 64;
  std::string secret;
  std::getline(std::cin, secret);
  if (secret.size() != kDigits) {
    throw ConfigError(
        "standard input holds no secret of a launch: this command is started by 'trireme launch', "
        "not by hand");
  }
  return secret;
}

CommandLine& add_caller(CommandLine& launch, const char* name, const char* what,
                        CallerOptions& options) {
  CommandLine& command = launch.add_hidden_command(name, what);
  command.add_option("--node", options.node, "Name of this node").required();
  command
      .add_option("--addresses", options.addresses,
                  "Addresses of the supervisor, with commas between them")
      .required();
  command.add_option("--port", options.port, "Port of the supervisor").required();
  command.add_flag("--plain", options.plain, "Use no TLS");
  command.add_option("--tls-certificate", options.tls_certificate, "Certificate of this node");
  command.add_option("--tls-key", options.tls_key, "Private key of the certificate");
  command.add_option("--tls-ca", options.tls_ca, "Certificates of the authorities");
  command.footer(
      fmt::format("Example:\n  trireme launch {} --help\nStarted by trireme launch.", name));
  return command;
}

Environment environment_of_this_process() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) {
      environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return environment;
}

// Replaces this process by the run's own command, with the environment that the run needs.
[[noreturn]] void become_rank(const std::vector<std::string>& run) {
  const RankEnvironment place = rank_environment(environment_of_this_process());
  const std::string folder = node_folder(place.launch, place.node);
  ::setenv("TRIREME_NODE", place.node.c_str(), 1);
  ::setenv("TRIREME_NODE_DIR", folder.c_str(), 1);
  // The memory that MPI shares between the ranks of the node is removed with the node folder.
  ::setenv("OMPI_MCA_btl_vader_backing_directory", folder.c_str(), 0);
  std::string program = "/proc/self/exe";
  std::vector<std::string> words = {"trireme"};
  words.insert(words.end(), run.begin(), run.end());
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  throw DeviceError(fmt::format("cannot start the run: error {}", errno));
}

}  // namespace

void add_agent_command(CommandLine& launch, int& exit_code) {
  const auto o = std::make_shared<CallerOptions>();
  CommandLine& command = add_caller(launch, "agent", "Serve a launch on its node", *o);
  command.add_option("--launch", o->launch, "ID of the launch").required();
  command.add_option("--health", o->health, "Shell command of the health check");
  command.add_option("--ports", o->ports, "Ports on which to take copies of checkpoints");
  command.callback([o, &exit_code] {
    exit_code = run_agent({.launch = o->launch,
                           .node = o->node,
                           .addresses = split(o->addresses),
                           .port = o->port,
                           .ports = parse_port_range(o->ports),
                           .secret = {read_secret(), o->tls()},
                           .health = o->health});
  });
}

void add_deputy_command(CommandLine& launch, int& exit_code) {
  const auto o = std::make_shared<CallerOptions>();
  CommandLine& command =
      add_caller(launch, "deputy", "Requeue the Slurm job if the supervisor's node dies", *o);
  command.add_option("--job", o->job, "ID of the Slurm job").required();
  command.callback([o, &exit_code] {
    exit_code = run_deputy({.job = o->job,
                            .node = o->node,
                            .addresses = split(o->addresses),
                            .port = o->port,
                            .secret = {read_secret(), o->tls()}});
  });
}

void add_rank_command(CommandLine& launch) {
  CommandLine& command =
      launch.add_hidden_command("rank", "Become one rank of the run, as mpirun starts it");
  const auto run = std::make_shared<std::vector<std::string>>();
  command.add_option("RUN", *run, "After '--': train CONFIG [KEY=VALUE]...").required();
  command.footer("Example:\n  trireme launch rank --help\nStarted by trireme launch.");
  command.callback([run] { become_rank(*run); });
}

}  // namespace trireme
