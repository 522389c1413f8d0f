#include "benchmarks/ckpt/dd.h"

#include <array>
#include <string>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/checkpoint/staging.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/stopwatch.h"

extern char** environ;

namespace trireme {
namespace {

constexpr std::int64_t kTransferBytes = std::int64_t{8} << 20;
constexpr int kNoSuchCommand = 127;

// Returns the exit status of dd.
int run_dd(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "dd");
  std::vector<char*> argv;
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  const int code = ::posix_spawnp(&pid, "dd", &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (code != 0 || ::waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
    return kNoSuchCommand;
  }
  return WEXITSTATUS(status);
}

void own_write(const std::filesystem::path& path, std::int64_t blocks) {
  const PageBuffer zeros(kTransferBytes);
  File file = File::create_new(path);
  (void)::fcntl(file.fd(), F_SETFL, O_DIRECT);
  for (std::int64_t i = 0; i < blocks; ++i) {
    file.write(zeros.data(), kTransferBytes);
  }
  file.sync();
  file.close();
}

void own_read(const std::filesystem::path& path) {
  const PageBuffer buffer(kTransferBytes);
  const File file = File::open_to_read(path);
  (void)::fcntl(file.fd(), F_SETFL, O_DIRECT);
  for (std::int64_t at = 0; at < file.size(); at += kTransferBytes) {
    file.read_at(at, buffer.data(), kTransferBytes);
  }
}

}  // namespace

double dd_write_seconds(const std::filesystem::path& file, std::int64_t bytes) {
  const std::int64_t blocks = (bytes + kTransferBytes - 1) / kTransferBytes;
  Stopwatch watch;
  if (run_dd({"if=/dev/zero", "of=" + file.string(), "bs=8M", fmt::format("count={}", blocks),
              "oflag=direct", "conv=fsync"}) != 0) {
    std::filesystem::remove(file);
    watch = {};
    own_write(file, blocks);
  }
  return watch.seconds();
}

double dd_read_seconds(const std::filesystem::path& file) {
  Stopwatch watch;
  if (run_dd({"if=" + file.string(), "of=/dev/null", "bs=8M", "iflag=direct"}) != 0) {
    watch = {};
    own_read(file);
  }
  return watch.seconds();
}

}  // namespace trireme
