// The chat of `trireme generate --chat`: reads messages from standard input and prints the model's
// answers as they are made.
#pragma once

#include <string>
#include <vector>

#include "src/app/command/command_line.h"
#include "src/app/model/chat_format.h"
#include "src/nn/sampling.h"
#include "src/train/load_model.h"

namespace trireme {

struct ChatOptions {
  bool on = false;
  bool json_lines = false;
  std::string system;
  ChatMarks marks;
  std::string chat_template;  // a file; may be empty

  bool has_marks() const;  // whether one of them is not the default
  // tokenizer: the path of its files, or empty. Throws DataError for a template that is not
  // supported.
  ChatFormat format(const std::string& tokenizer) const;
  // The caller keeps the object until the command has run.
  void add_to(CommandLine& command);
};

// How answers are drawn.
struct AnswerOptions {
  SamplingOptions sampling;
  std::int64_t tokens = 256;      // at most
  std::vector<std::string> stop;  // texts that end an answer, beside those of the format
};

// Returns at the end of the input. Ctrl-C ends an answer, not the chat. Throws DataError after the
// last line if lines of JSON were no messages.
void run_chat(const ChatOptions& options, const ChatFormat& format, const AnswerOptions& answers,
              const LoadedModel& loaded, Run& run, const Tokenizer& tokenizer);

}  // namespace trireme
