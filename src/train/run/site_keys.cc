#include "src/base/error.h"
#include "src/train/run/launch_tls.h"
#include "src/train/run/run_config.h"
#include "src/train/run/site_log.h"

namespace trireme {

namespace {

void bind_encryption_keys(ConfigBinder& b, EncryptionConfig& c) {
  b.texts("encryption.keys", c.keys,
          "keys for which checkpoints and packed datasets are encrypted, and with which they are "
          "read, such as file:/etc/trireme/site.key; empty: nothing is encrypted "
          "(docs/encryption.md)");
  b.boolean("encryption.accept_plain", c.accept_plain,
            "also read checkpoints that are not encrypted, although encryption.keys names keys");
  b.boolean("encryption.accept_plain_data", c.accept_plain_data,
            "also read datasets that are not encrypted, although encryption.keys names keys");
  b.boolean("encryption.logs", c.logs,
            "also encrypt the logs, metrics, events for TensorBoard and traces in run.dir, for the "
            "same keys; trireme log prints them (docs/encryption.md)");
}

void bind_audit(ConfigBinder& b, AuditConfig& c) {
  b.path("audit.log", c.log,
         "file to which commands append what they do, as lines that are chained by digests; empty: "
         "none (docs/evidence.md)");
  b.path("audit.key", c.key,
         "private key, as made by trireme audit keygen, or the pkcs11: URI of one in a token, with "
         "which the audit log and the provenance of checkpoints and datasets are signed; empty: "
         "nothing is signed");
  b.texts("audit.copies", c.copies,
          "services of the host that get a copy of each line of the audit log: syslog, journald, "
          "or either with its socket, as in syslog:/run/audit.sock (docs/evidence.md)");
}

// Has the site's files and the environment.
ConfigBinder site_binder(const char* const* environment, const std::filesystem::path& site) {
  ConfigBinder b;
  b.add_site_files(site);
  if (environment != nullptr) {
    b.add_environment(environment);
  }
  b.allow_word_for("parallel", "parallel.layout");
  return b;
}

}  // namespace

void bind_site_keys(ConfigBinder& b, RunConfig& c) {
  constexpr double kLongestSeconds = 86400;
  constexpr double kMostPerKwh = 1e9;
  b.path("metrics.openmetrics", c.metrics.openmetrics,
         "where rank 0 writes its latest metrics for Prometheus while it trains: a file whose name "
         "ends in .prom, or a folder, in which the file's name follows from the run's; empty: "
         "nowhere (docs/metrics.md)");
  b.real("metrics.openmetrics_every", c.metrics.openmetrics_every,
         "least number of seconds from one such write to the next")
      .at_least(1)
      .at_most(kLongestSeconds);
  b.real(
       "energy.co2_grams_per_kwh", c.energy.co2_grams_per_kwh,
       "carbon dioxide that the site's electricity causes, in grams per kilowatt-hour; 0: unknown")
      .at_least(0)
      .at_most(kMostPerKwh);
  b.real("energy.price_per_kwh", c.energy.price_per_kwh,
         "price of a kilowatt-hour in energy.currency; 0: unknown")
      .at_least(0)
      .at_most(kMostPerKwh);
  b.text("energy.currency", c.energy.currency, "currency of energy.price_per_kwh");
  b.real("energy.pue", c.energy.pue,
         "power usage effectiveness of the site: what it draws from the grid, divided by what its "
         "nodes use; carbon and price are multiplied by it")
      .at_least(1)
      .at_most(10);
  b.text("launch.on_event", c.launch.on_event,
         "shell command that trireme launch runs for each event of the launch, with the event as "
         "JSON on its standard input; empty: none (docs/launch.md)");
  b.real("launch.event_deadline", c.launch.event_deadline,
         "seconds after which such a command is killed")
      .above(0)
      .at_most(3600);
  bind_launch_tls(b);
  bind_audit(b, c.audit);
  bind_encryption_keys(b, c.encryption);
  b.text("security.transport", c.security.transport,
         "over what the ranks may exchange data: any; isolated, only security.networks; "
         "tunnel:INTERFACE, as in tunnel:wg0, only a WireGuard or IPsec interface "
         "(docs/security.md)");
  b.texts("security.networks", c.security.networks,
          "networks that the site has set apart for jobs, as in [10.77.0.0/24]; needed by "
          "security.transport: isolated");
  b.boolean("security.seccomp", c.security.seccomp,
            "forbid the ranks, once they are connected, to start programs and to open sockets of "
            "other families than local, IP and netlink ones (docs/security.md)");
  b.boolean("security.lock_memory", c.security.lock_memory,
            "let no memory of the ranks be swapped out; needs an unlimited ulimit -l "
            "(docs/security.md)");
}

AuditConfig site_audit_config(const char* const* environment, const std::filesystem::path& site) {
  ConfigBinder b = site_binder(environment, site);
  AuditConfig config;
  bind_audit(b, config);
  b.finish_part(run_config_keys());
  if (const std::string fault = fault_of_site_log(b, config, site); !fault.empty()) {
    throw ConfigError(fmt::format("{}: audit.log: {}", b.origin_of("audit.log"), fault));
  }
  return config;
}

EncryptionConfig site_encryption_config(const char* const* environment,
                                        const std::filesystem::path& site) {
  ConfigBinder b = site_binder(environment, site);
  EncryptionConfig config;
  bind_encryption_keys(b, config);
  b.finish_part(run_config_keys());
  return config;
}

}  // namespace trireme
