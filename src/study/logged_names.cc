#include "src/study/logged_names.h"

#include <algorithm>
#include <array>

namespace trireme {
namespace {

template <std::size_t N>
bool is_any(const std::array<std::string_view, N>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// Returns whether "n7:2868:2868 [0] NCCL INFO" names a host here.
bool is_host_of_nccl(std::string_view rest) {
  const std::size_t end = rest.starts_with(':') ? rest.find_first_not_of("0123456789:", 1) : 0;
  return end > 1 && end != std::string_view::npos && rest.substr(end, 2) == " [" &&
         rest.substr(end, 16).find("] NCCL ") != std::string_view::npos;
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

bool is_ordinary_word(std::string_view word) {
  constexpr std::array<std::string_view, 44> kWords = {
      "node",   "nodes",  "host",    "hosts", "ok",    "none",  "null",   "rank",    "ranks",
      "pinned", "failed", "error",   "up",    "down",  "all",   "any",    "unknown", "localhost",
      "root",   "name",   "step",    "the",   "this",  "each",  "every",  "failure", "true",
      "false",  "yes",    "no",      "on",    "off",   "auto",  "nan",    "inf",     "cuda",
      "cpu",    "info",   "warning", "warn",  "debug", "fatal", "notice", "n"};
  return is_any(kWords, word);
}

bool is_host_option(const NameWords& words) {
  constexpr std::array<std::string_view, 5> kOptions = {"--host", "-host", "-w", "--exclude",
                                                        "--nodelist"};
  return is_any(kOptions, words.word()) ||
         (words.word() == "-H" && words.line_before().find("curl") == std::string_view::npos);
}

bool is_host_in_log(const NameWords& words) {
  const std::string_view rest = words.rest();
  const std::string before = lowered(words.before(1));
  const bool number = has_number(words.word());
  const bool on = before == "on";
  const bool port = before == "host" && rest.starts_with(" port ");
  const std::size_t digits = rest.starts_with(':') ? rest.find_first_not_of("0123456789", 1) : 0;
  const bool failed = digits > 1 && digits != std::string_view::npos &&
                      rest.substr(digits).starts_with(" failed") && number;
  const bool of_rank = is_number(words.before(1)) && lowered(words.before(2)) == "rank";
  const bool on_rank = on && is_number(words.before(2)) && lowered(words.before(3)) == "rank";
  const bool of_node = (before == "node" || before == "host") && number && words.follows(" ");
  const bool failure = on && words.before(2) == "failure";
  const bool peer =
      before == "host" && words.follows(" ") &&
      (words.before(2) == "Local" || words.before(2) == "Remote" || words.before(2) == "Peer");
  const bool url = words.follows("tcp://") && digits > 1;
  const bool submitted = words.before(1) == "Sid" && words.before(2) == "AllocNode";
  return port || failed || on_rank || (of_rank && words.char_before() == '(') || of_node ||
         failure || peer || url || submitted || is_host_of_mpi(words) || is_host_of_nccl(rest) ||
         words.before(1) == "ON" || rest.starts_with(": task ") || rest.starts_with(": tasks ");
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
  const std::string_view line = words.line_before();
  const bool slurm = line.find("srun") != std::string_view::npos ||
                     line.find("sbatch") != std::string_view::npos ||
                     line.find("salloc") != std::string_view::npos;
  return slurm ? words.word().substr(2) : std::string_view();
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
