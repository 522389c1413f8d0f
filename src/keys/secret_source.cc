#include "src/keys/secret_source.h"

#include <cerrno>

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/base/private_file.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostSecretBytes = 4096;
constexpr std::size_t kMostTypedBytes = 1024;
constexpr char kInterrupt = 0x03;
constexpr char kEndOfText = 0x04;
constexpr char kBackspace = 0x08;
constexpr char kKillLine = 0x15;
constexpr char kDelete = 0x7f;

using Terminal = UniqueHandle<FileDescriptorTraits>;

// A process in the background would be stopped by the terminal when it reads, and wait for ever.
Terminal open_terminal(std::string_view advice) {
  Terminal terminal(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!terminal) {
    throw ConfigError(fmt::format("there is no terminal to ask on: {}", advice));
  }
  if (::tcgetpgrp(terminal.get()) != ::getpgrp()) {
    throw ConfigError(
        fmt::format("this process cannot ask on the terminal, because it runs in the background or "
                    "was started by a launcher: {}",
                    advice));
  }
  return terminal;
}

// Keeps a terminal from showing what is typed, and from turning keys into signals, which could end
// the process in this state.
class WithoutEcho {
 public:
  explicit WithoutEcho(int terminal) : terminal_(terminal) {
    is_set_ = ::tcgetattr(terminal, &before_) == 0;
    termios quiet = before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | ISIG);
    quiet.c_cc[VMIN] = 1;
    quiet.c_cc[VTIME] = 0;
    is_set_ = is_set_ && ::tcsetattr(terminal, TCSAFLUSH, &quiet) == 0;
  }
  ~WithoutEcho() {
    if (is_set_) {
      (void)::tcsetattr(terminal_, TCSAFLUSH, &before_);
    }
  }
  WithoutEcho(const WithoutEcho&) = delete;
  WithoutEcho& operator=(const WithoutEcho&) = delete;
  bool is_set() const { return is_set_; }

 private:
  int terminal_;
  termios before_{};
  bool is_set_ = false;
};

void show(const Terminal& terminal, std::string_view text) {
  (void)!::write(terminal.get(), text.data(), text.size());
}

char read_key(const Terminal& terminal) {
  char key = 0;
  ssize_t got = 0;
  do {
    got = ::read(terminal.get(), &key, 1);
  } while (got < 0 && errno == EINTR);
  return got == 1 ? key : kEndOfText;
}

// Removes the last character, which may have several bytes in UTF-8.
std::size_t without_last_character(const Secret& typed, std::size_t bytes) {
  while (bytes > 0) {
    --bytes;
    if ((typed.data()[bytes] & 0xc0U) != 0x80U) {
      break;
    }
  }
  return bytes;
}

// Returns the line, which is a part of `typed`. Throws if the user cancels.
std::string_view read_typed(const Terminal& terminal, Secret& typed) {
  std::size_t bytes = 0;
  while (true) {
    const char key = read_key(terminal);
    if (key == '\n' || key == '\r') {
      return typed.view().substr(0, bytes);
    }
    if (key == kInterrupt || key == kEndOfText) {
      throw ConfigError("cancelled on the terminal");
    }
    if (key == kBackspace || key == kDelete) {
      bytes = without_last_character(typed, bytes);
    } else if (key == kKillLine) {
      bytes = 0;
    } else if (bytes == typed.bytes()) {
      throw ConfigError(fmt::format("more than {} bytes were typed", kMostTypedBytes));
    } else {
      typed.data()[bytes++] = static_cast<unsigned char>(key);
    }
  }
}

}  // namespace

Secret read_secret_line(const std::filesystem::path& path, std::string_view what) {
  const PrivateFile file(path, kMostSecretBytes, what);
  file.check_owner_only();
  std::string_view line = file.text();
  line = line.substr(0, line.find('\n'));
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  if (file.text().find("TRIREME-KEY-1") != std::string::npos ||
      file.text().find("PRIVATE KEY-----") != std::string::npos) {
    throw DataError(
        fmt::format("{}: this is a key file: write {} to a file of its own, or name "
                    "the key as file:PATH",
                    printable(path.string()), what));
  }
  if (line.empty()) {
    throw DataError(
        fmt::format("{}: the first line is empty: write {} there", printable(path.string()), what));
  }
  return Secret(line);
}

void check_terminal(std::string_view advice) { (void)open_terminal(advice); }

Secret ask_secret(std::string_view prompt, std::string_view advice) {
  const Terminal terminal = open_terminal(advice);
  const WithoutEcho quiet(terminal.get());
  if (!quiet.is_set()) {
    throw ConfigError(fmt::format("the terminal cannot hide what is typed: {}", advice));
  }
  show(terminal, printable(prompt) + " ");
  Secret typed(kMostTypedBytes);
  try {
    Secret line(read_typed(terminal, typed));
    show(terminal, "\n");
    return line;
  } catch (const Error&) {
    show(terminal, "\n");
    throw;
  }
}

}  // namespace trireme
