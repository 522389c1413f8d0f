// EventFile writes scalars for TensorBoard, in one file per process and start. Like every log, it
// never stops the program: records that a full disk refuses are dropped and counted. For one thread
// at a time.
//
//   file    events.out.tfevents.<unix time>.<host>.<pid>.<n>
//   record  u64 length | u32 masked CRC-32C of the length | data | u32 masked CRC-32C of the data
//   data    Event (protobuf): wall_time double = 1, step int64 = 2, file_version string = 3,
//           summary = 5 {value = 1 {tag string = 1, simple_value float = 2}},
//           session_log = 7 {status = 1}
//
// All numbers are little-endian. The first record has the file_version "brain.Event:2"
// (tensorflow/core/util/event.proto, lib/io/record_writer).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/append_file.h"

namespace trireme {

using Scalar = std::pair<std::string, float>;  // tag, value

class EventFile {
 public:
  // Creates the folder and a new file in it. TensorBoard then discards the steps from first_step on
  // in earlier files of the folder, because a resumed run computes them again.
  // sealer: encrypts the file; null: it is plain, as TensorBoard needs it.
  EventFile(const std::filesystem::path& folder, std::int64_t first_step,
            const RunSealer* sealer = nullptr);

  void scalars(std::int64_t step, const std::vector<Scalar>& values);
  const std::filesystem::path& path() const { return file_.path(); }
  const AppendFile& file() const { return file_; }

 private:
  AppendFile file_;
};

// Return the parts of a file, for tests. Times are in seconds since 1970.
std::uint32_t crc32c(std::string_view bytes);
std::string event_record(std::string_view event);
std::string version_event(double wall_time);
std::string start_event(double wall_time, std::int64_t step);
std::string scalar_event(double wall_time, std::int64_t step, const std::vector<Scalar>& values);

}  // namespace trireme
