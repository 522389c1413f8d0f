#include "src/plan/outlook.h"

#include <algorithm>
#include <cmath>

namespace trireme {
namespace {

constexpr double kSecondsPerDay = 86400;
constexpr double kGigabyte = 1e9;
constexpr double kJoulesPerKwh = 3.6e6;
// A checkpoint holds weights and both moments in fp32.
constexpr double kCheckpointBytes = 12;
// A snapshot is copied from the device at the rate of a PCIe 4.0 x16 link, with what protocols
// take.
constexpr double kCopyBytesPerSecond = 20e9;

double failures_per_second(const Cluster& cluster, double nodes) {
  return cluster.failures.per_1000_node_days / 1000 / kSecondsPerDay * nodes;
}

}  // namespace

double mean_device_watts(const Cluster& cluster, double busy) {
  const Cluster::Device& d = cluster.device;
  return d.idle_watts > 0 ? d.idle_watts + busy * (d.watts - d.idle_watts) : d.watts;
}

double daly_interval(double save_seconds, double mtbf_seconds) {
  const double c = save_seconds;
  const double m = mtbf_seconds;
  if (c >= 2 * m) {
    return m;
  }
  return std::sqrt(2 * c * m) * (1 + std::sqrt(c / (2 * m)) / 3 + c / (18 * m)) - c;
}

Outlook outlook(const Cluster& cluster, const RunSize& size) {
  Outlook o;
  double stopped = 0;  // share of the time that saves and restarts take
  const double bytes = kCheckpointBytes * size.parameters;
  o.stall_seconds = bytes / static_cast<double>(size.ranks) / kCopyBytesPerSecond;
  if (cluster.storage.write_gb_per_s > 0) {
    o.save_seconds = o.stall_seconds + bytes / (cluster.storage.write_gb_per_s * kGigabyte);
  }
  const double read =
      cluster.storage.read_gb_per_s > 0 ? bytes / (cluster.storage.read_gb_per_s * kGigabyte) : 0;
  o.restart_seconds = cluster.failures.detect_seconds + cluster.failures.relaunch_seconds + read;
  const double rate = failures_per_second(cluster, size.nodes);
  if (rate > 0) {
    o.mtbf_seconds = 1 / rate;
    // Training goes on while a save is written, so the next one starts when that is done at the
    // earliest; only the stall costs time.
    o.interval_seconds =
        std::max({daly_interval(o.stall_seconds, o.mtbf_seconds), o.save_seconds, size.seconds});
    const double stalls = o.stall_seconds / o.interval_seconds;
    // After a failure, half an interval and the save that was being written are lost on average.
    const double lost = rate * (o.restart_seconds + o.interval_seconds / 2 + o.save_seconds);
    o.goodput = 1 / ((1 + stalls) * (1 + lost));
    stopped = o.goodput * (stalls + (1 + stalls) * rate * o.restart_seconds);
  }
  o.busy = (1 - stopped) * (size.seconds > 0 ? 1 - size.waiting / size.seconds : 1);
  o.device_watts = mean_device_watts(cluster, o.busy);
  o.days = size.steps * size.seconds / o.goodput / kSecondsPerDay;
  const double seconds = o.days * kSecondsPerDay;
  const double node_watts = cluster.node.watts + cluster.device.per_node * o.device_watts;
  o.kilowatt_hours = cluster.energy.pue * size.nodes * node_watts * seconds / kJoulesPerKwh;
  o.price = size.nodes * cluster.node.price_per_hour * seconds / 3600 +
            cluster.energy.price_per_kwh * o.kilowatt_hours;
  o.co2_kilograms = cluster.energy.co2_grams_per_kwh * o.kilowatt_hours / 1000;
  return o;
}

}  // namespace trireme
