// The configuration, and a site put into one that people have written.
#include "documents/configuration.hpp"
#include "documents/site_proposal.hpp"
#include "documents/yaml.hpp"
#include "fuzz/harness.hpp"

HPCBATCH_HARNESS(configuration, bytes) {
  try {
    const Configuration read = parse_configuration(bytes, "/c/config.yaml");
    check(read.sites.size() == read.lines.size(), "each site has its lines");
    check(read.sites.size() <= bytes.size(), "no more sites than bytes");
    for (const Site& site : read.sites) {
      entry::plugin(site.scheduler, site.scheduler_config);
      for (const std::string& option : site.options) entry::scalar(option);
    }
  } catch (const DocumentError&) {
  }
  const std::string item = "- name: added\n  scheduler: local\n";
  const auto with = with_site(std::string(bytes), item);
  check(!with || with->size() >= bytes.size(), "what people have written stays");
}
