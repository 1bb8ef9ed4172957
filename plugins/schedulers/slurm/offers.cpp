#include "offers.hpp"

#include "listing.hpp"
#include "submission.hpp"

#include <algorithm>
#include <sstream>

namespace hpcbatch::slurm {

unsigned long leading_number(const std::string& text) {
  unsigned long number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') break;
    number = number * 10 + static_cast<unsigned long>(c - '0');
  }
  return number;
}

void add_gpus(const std::string& gres, std::map<std::string, std::uint32_t>& gpus) {
  std::string plain;
  int depth = 0;
  for (const char c : gres) {
    if (c == '(') ++depth;
    if (depth == 0) plain += c;
    if (c == ')') --depth;
  }
  std::istringstream items(plain);
  for (std::string item; std::getline(items, item, ',');) {
    if (!item.starts_with("gpu:")) continue;
    item.erase(0, 4);
    const auto colon = item.rfind(':');
    const std::string kind = colon == std::string::npos ? "" : item.substr(0, colon);
    const std::string count = colon == std::string::npos ? item : item.substr(colon + 1);
    auto& most = gpus[kind];
    most = std::max(most, static_cast<std::uint32_t>(leading_number(count)));
  }
}

CommandLine list_partitions() {
  return {.argv = {"sinfo", "--all", "--noheader", "--exact", "--format=hb|%P|%D|%c|%m|%l|%G"}};
}

Result<std::vector<Offer>> read_partitions(const CommandOutput& output) {
  if (output.timed_out || output.exit_code != 0) {
    return Error{Error::Kind::Transient, "cannot list the partitions of SLURM: " +
                                             (output.timed_out ? "sinfo gave no answer in time"
                                                               : one_line(output.standard_error))};
  }
  std::vector<Offer> offers;
  std::istringstream lines(output.standard_output);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> parts;
    std::istringstream words(line);
    for (std::string word; std::getline(words, word, '|');) parts.push_back(word);
    if (parts.size() != 7 || parts[0] != "hb") continue;
    std::string name = parts[1];
    if (name.ends_with('*')) name.pop_back();  // the default partition
    auto offer = std::find_if(offers.begin(), offers.end(),
                              [&](const Offer& o) { return o.partition == name; });
    if (offer == offers.end()) offer = offers.insert(offers.end(), Offer{.partition = name});
    offer->nodes += static_cast<std::uint32_t>(leading_number(parts[2]));
    offer->cpus = std::max(offer->cpus, static_cast<double>(leading_number(parts[3])));
    offer->memory = std::max<std::uint64_t>(offer->memory, leading_number(parts[4]) << 20);
    offer->walltime = read_duration(parts[5]);
    add_gpus(parts[6], offer->gpus);
  }
  if (offers.empty())
    return Error{Error::Kind::Transient, "cannot list the partitions of SLURM: sinfo named none"};
  return offers;
}

}  // namespace hpcbatch::slurm
