#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "io/checkpoint/exported_metadata.h"
#include "io/checkpoint/load/load_step.h"
#include "io/checkpoint/safetensors.h"
#include "io/checkpoint/staging.h"
#include "io/checkpoint/step_keys.h"
#include "src/app/access/output_place.h"
#include "src/app/checkpoint/ckpt_subcommands.h"
#include "src/app/command/written_files.h"
#include "src/app/evidence/release_check.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/base/units.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPartBytes = std::int64_t{64} << 20;
constexpr std::int64_t kHeaderAlignment = 4096;

struct ExportOptions {
  std::string checkpoint;
  std::string out;
  std::vector<std::string> releases;
  KeyChoice keys;
  bool plain = false;
};

// Writes the parameters of a checkpoint, without the optimizer's state, to one safetensors file.
// Removes the file unless finish() was called.
class ModelFile {
 public:
  ModelFile(const StepFolder& step, const fs::path& path)
      : step_(step), path_(path), file_(File::create_new(path)) {
    for (const StoredTensor& tensor : step.manifest->tensors) {
      if (!tensor.name.starts_with("optimizer.")) {
        entries_.push_back(
            {tensor.name, tensor.dtype, tensor.shape.to_vector(), end_, end_ + tensor.bytes()});
        end_ += tensor.bytes();
      }
    }
  }
  ~ModelFile() {
    if (!is_done_) {
      std::error_code ignored;
      fs::remove(path_, ignored);
    }
  }
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  void write(const std::map<std::string, std::string>& metadata) {
    const std::string header = encode_safetensors_header(metadata, entries_, kHeaderAlignment);
    file_.write(header.data(), std::ssize(header));
    for (const SafetensorsEntry& entry : entries_) {
      write_tensor(*step_.manifest->find(entry.name));
    }
    file_.sync();
    file_.close();
    is_done_ = true;
  }
  std::int64_t bytes() const { return end_; }
  std::int64_t tensors() const { return std::ssize(entries_); }

 private:
  void write_tensor(const StoredTensor& tensor) {
    const std::int64_t size = size_of(tensor.dtype);
    const std::int64_t elements = tensor.shape.elements();
    for (std::int64_t first = 0; first < elements;) {
      const std::int64_t count = std::min(kPartBytes / size, elements - first);
      const TensorBlock block{tensor.name, tensor.shape, Extent::flat(first, count),
                              View{buffer_.data(), count, tensor.dtype}};
      load_step(step_.path, *step_.manifest, {&block, 1});
      file_.write(buffer_.data(), count * size);
      first += count;
    }
  }

  const StepFolder& step_;
  fs::path path_;
  File file_;
  std::vector<SafetensorsEntry> entries_;
  std::int64_t end_ = 0;
  PageBuffer buffer_{kPartBytes};
  bool is_done_ = false;
};

void export_step(const ExportOptions& options, const Access& access, AuditTrail& audit) {
  if (fs::exists(fs::symlink_status(options.out))) {
    throw PolicyError(
        fmt::format("--out: {} exists, and an export replaces no file", printable(options.out)));
  }
  check_in_no_data("--out", options.out);
  check_outside_of({"--out", options.out}, options.checkpoint, "which is exported");
  ReleaseUses releases;
  KeyOptions keys = with_export(options.keys.options(), access,
                                {options.releases.begin(), options.releases.end()}, releases);
  keys.admit = [&, admit = keys.admit](const Manifest& manifest, const fs::path& path) {
    admit(manifest, path);
    if (!manifest.data_key.empty() && !options.plain) {
      throw PolicyError(fmt::format(
          "{} is encrypted, but the exported file is not: give --plain if it may be written",
          printable(path.string())));
    }
  };
  with_intact_step(options.checkpoint, keys, [&](const StepFolder& step) {
    ModelFile file(step, options.out);
    file.write(exported_metadata(step));
    const ReleaseUse& use = releases[step.path];
    note_export(audit, step, use, options.out, "safetensors");
    fmt::print("{}: {}, {} in plain{}\n", printable(options.out), counted(file.tensors(), "tensor"),
               format_bytes(file.bytes()),
               use.signers.empty() ? "" : fmt::format("; released by {}", printable(use.signers)));
  });
}

}  // namespace

void add_ckpt_export(CommandLine& ckpt, AuditTrail& audit, const AccessSource& access) {
  CommandLine& command =
      ckpt.add_command("export", "Write a model's parameters as one plain safetensors file");
  const auto options = std::make_shared<ExportOptions>();
  command
      .add_option("DIR", options->checkpoint,
                  "A checkpoint, or a folder of checkpoints: then its newest valid one")
      .required();
  command.add_option("--out", options->out, "The new file").required().type_name("FILE");
  command
      .add_option("--release", options->releases,
                  "A release of this checkpoint, if the policy of the site asks for one; can be "
                  "repeated, for the checkpoint beside which this one was trained")
      .one_value_per_use()
      .type_name("FILE");
  options->keys.add_to(command);
  command.add_flag("--plain", options->plain,
                   "Write an encrypted checkpoint's weights without encryption");
  command.footer(
      "Example:\n"
      "  trireme ckpt export runs/first/checkpoints --out model.safetensors \\\n"
      "    --release release.json\n"
      "The file is not encrypted, so that an encrypted checkpoint needs --plain. 'trireme release' "
      "makes releases.");
  command.callback([options, access, &audit] { export_step(*options, access(), audit); });
}

}  // namespace trireme
