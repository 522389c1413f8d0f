#include "src/study/anonymity/logged_names.h"

#include <algorithm>
#include <array>

namespace trireme {
namespace {

template <std::size_t N>
bool is_any(const std::array<std::string_view, N>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

constexpr std::array<std::string_view, 4> kOfSlurm = {"srun", "sbatch", "salloc", "#SBATCH"};

// Returns whether one of four programs stands before the word on its line.
bool is_command_of(const NameWords& words, const std::array<std::string_view, 4>& programs) {
  const std::string_view line = words.line_before();
  return std::any_of(programs.begin(), programs.end(), [&](std::string_view program) {
    return line.find(program) != std::string_view::npos;
  });
}

// Returns whether "n7:2868:2868 [0] NCCL INFO" names a host here.
bool is_host_of_nccl(std::string_view rest) {
  const std::size_t end = rest.starts_with(':') ? rest.find_first_not_of("0123456789:", 1) : 0;
  return end > 1 && end != std::string_view::npos && rest.substr(end, 2) == " [" &&
         rest.substr(end, 16).find("] NCCL ") != std::string_view::npos;
}

// Returns whether "[1795982955.123] [n7:12345:0] ucp_worker.c:5 UCX  WARN" or "[n7:12345:0:12345]
// Caught signal" names a host here. It may have a domain.
bool is_host_of_ucx(const NameWords& words) {
  constexpr std::size_t kNumbers = 64;    // bytes of the numbers of a process and a thread
  constexpr std::size_t kFarthest = 200;  // bytes up to the name of UCX
  const std::string_view rest = words.rest();
  if (words.char_before() != '[' || !rest.starts_with(':')) {
    return false;
  }
  const std::string_view numbers = rest.substr(0, rest.substr(0, kNumbers).find(']'));
  if (numbers.size() == rest.size() || std::count(numbers.begin(), numbers.end(), ':') < 2 ||
      numbers.find_first_not_of("0123456789:") != std::string_view::npos) {
    return false;
  }
  const std::string_view time = words.before(1);
  const bool timed = words.follows("] [") && time.find('.') != std::string_view::npos &&
                     time.find_first_not_of("0123456789.") == std::string_view::npos;
  const std::string_view near = rest.substr(numbers.size() + 1, kFarthest);
  return timed || near.starts_with(" Caught signal") ||
         near.substr(0, near.find('\n')).find(" UCX ") != std::string_view::npos;
}

// Returns whether "[n7:12345] ***" or "[n7][[1,1],0]" of Open MPI, or "[n7:12345:0:12345]" or
// "[n7:12345 :0]" of UCX names a host here, rather than a line of a file.
bool is_host_of_mpi(const NameWords& words) {
  constexpr std::size_t kLeastDigits = 4;
  const std::string_view rest = words.rest();
  if (words.char_before() == '[' && rest.starts_with("][[") && !is_number(words.word())) {
    return true;
  }
  const std::size_t end = rest.starts_with(':') ? rest.find_first_not_of("0123456789", 1) : 0;
  if (words.char_before() != '[' || end < 2 || end == std::string_view::npos ||
      words.word().find('.') != std::string_view::npos) {
    return false;
  }
  const std::string_view message = rest.substr(end + 1);
  if (rest.substr(end).starts_with(" :") || rest.substr(end).starts_with(":0:")) {
    return true;
  }
  return rest[end] == ']' && (message.starts_with(" ***") || message.starts_with(" [") ||
                              (end > kLeastDigits && has_number(words.word())));
}

}  // namespace

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

bool has_number(std::string_view word) {
  return word.find_first_of("0123456789") != std::string_view::npos;
}

bool is_host_option(const NameWords& words) {
  constexpr std::array<std::string_view, 3> kOptions = {"--host", "-host", "--nodelist"};
  const std::string_view word = words.word();
  return is_any(kOptions, word) ||
         (word == "-H" && is_command_of(words, {"mpirun", "mpiexec", "pdsh", "horovodrun"})) ||
         ((word == "-w" || word == "-x" || word == "--exclude") && is_command_of(words, kOfSlurm));
}

bool is_host_in_log(const NameWords& words) {
  const std::string_view rest = words.rest();
  const std::string before = lowered(words.before(1));
  // Names of hosts mostly begin with a letter and have a digit, as n1 has. Some of the forms below
  // ask for that, because a common word may stand in the same place.
  const bool named = is_letter(words.word()[0]) && !is_number(words.word().substr(0, 1)) &&
                     has_number(words.word());
  const std::size_t digits = rest.starts_with(':') ? rest.find_first_not_of("0123456789", 1) : 0;
  const bool port = before == "host" && rest.starts_with(" port ");
  const bool failed =
      digits > 1 && digits != std::string_view::npos && rest.substr(digits).starts_with(" failed");
  const bool of_rank = is_number(words.before(1)) && lowered(words.before(2)) == "rank" &&
                       words.char_before() == '(';
  const bool on_rank =
      before == "on" && is_number(words.before(2)) && lowered(words.before(3)) == "rank";
  const bool of_node = (before == "node" || before == "host") && words.follows(" ");
  const bool failure = before == "on" && words.before(2) == "failure";
  const bool peer =
      before == "host" && words.follows(" ") &&
      (words.before(2) == "Local" || words.before(2) == "Remote" || words.before(2) == "Peer");
  const bool url = words.follows("tcp://") && digits > 1;
  const bool submitted = words.before(1) == "Sid" && words.before(2) == "AllocNode";
  const bool cancelled =
      words.before(1) == "ON" && (rest.starts_with(" CANCELLED") || rest.starts_with(" FAILED"));
  const bool task = (rest.starts_with(": task ") || rest.starts_with(": tasks ")) &&
                    words.follows("srun: error: ");
  return (named && (failed || of_rank || on_rank || of_node || failure)) || port || peer || url ||
         submitted || cancelled || task || is_host_of_mpi(words) || is_host_of_ucx(words) ||
         is_host_of_nccl(rest);
}

bool is_host_list_in_log(const NameWords& words) {
  const std::string before = lowered(words.before(1));
  return (before == "nodes" || before == "node" || before == "hosts") && words.follows(" ") &&
         words.rest().starts_with('[') && words.rest().size() > 1 &&
         is_number(words.rest().substr(1, 1));
}

std::string_view joined_host(const NameWords& words) {
  if (!words.word().starts_with("-w") || !has_number(words.word())) {
    return {};
  }
  return is_command_of(words, kOfSlurm) ? words.word().substr(2) : std::string_view();
}

bool is_login(const NameWords& words) {
  constexpr std::array<std::string_view, 6> kPrograms = {"ssh",   "scp",   "sftp",
                                                         "rsync", "sshfs", "ssh-copy-id"};
  return is_any(kPrograms, words.before(1)) || is_any(kPrograms, words.before(2)) ||
         is_any(kPrograms, words.before(3));
}

std::vector<std::string> users_of_homes(std::string_view text) {
  std::vector<std::string> users;
  for (const std::string_view home : {"/home/", "/users/", "/Users/"}) {
    for (std::size_t at = text.find(home); at != std::string_view::npos;
         at = text.find(home, at + 1)) {
      const std::size_t begin = at + home.size();
      std::size_t end = begin;
      while (end < text.size() && (is_name(text[end]) || text[end] == '.')) {
        ++end;
      }
      users.emplace_back(text.substr(begin, end - begin));
    }
  }
  return users;
}

}  // namespace trireme
