#include "tools/input_facts.hpp"

#include "documents/spelling.hpp"
#include "documents/text_check.hpp"
#include "hpcbatch/input_facts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace hpcbatch {
namespace {

using OfMany = FactDescription::OfMany;
using KnownFacts = std::map<std::string, OfMany>;

KnownFacts known_facts(const Tool& plugin) {
  KnownFacts known;
  if (const auto* facts = dynamic_cast<const InputFacts*>(&plugin)) {
    for (const FactDescription& fact : facts->facts()) known.emplace(fact.name, fact.of_many);
  }
  return known;
}

void check_asked(const ToolFile& tool, const KnownFacts& known) {
  std::vector<std::string> names{"size", "count"};
  for (const auto& [name, of_many] : known) names.push_back(name);
  for (const AskedFact& asked : tool.facts) {
    if (known.contains(asked.fact)) continue;
    throw std::runtime_error(
        fmt::format("{} uses '{}.{}', and what its plugin {} tells of an input is {}{}",
                    asked.place, asked.input, show_text(asked.fact, 40), tool.plugin,
                    fmt::join(names, ", "), spelling_hint(asked.fact, names)));
  }
}

double sane(double value, const AskedFact& asked, const InputFile& file) {
  if (std::isfinite(value) && value >= 0) return value;
  throw std::runtime_error(fmt::format("its plugin says that {} of {} is {:g}; mend the plugin",
                                       asked.fact, show_text(file.path), value));
}

}  // namespace

void check_facts(const ToolFile& tool, const Tool& plugin) {
  if (!tool.facts.empty()) check_asked(tool, known_facts(plugin));
}

std::map<std::string, double> facts_of(const ToolFile& tool, const Tool& plugin,
                                       const ToolRequest& request) {
  std::map<std::string, double> values;
  if (tool.facts.empty()) return values;
  const KnownFacts known = known_facts(plugin);
  check_asked(tool, known);
  std::map<std::string, std::vector<AskedFact>> by_input;
  for (const AskedFact& asked : tool.facts) {
    // Two amounts may use one.
    if (values.emplace(asked.input + "." + asked.fact, 0).second)
      by_input[asked.input].push_back(asked);
  }
  const auto& facts = dynamic_cast<const InputFacts&>(plugin);
  for (const auto& [input, wanted] : by_input) {
    const auto given = request.inputs.find(input);
    if (given == request.inputs.end()) continue;
    for (const InputFile& file : given->second) {
      const std::map<std::string, double> told = facts.facts_of(file);
      for (const AskedFact& asked : wanted) {
        const auto at = told.find(asked.fact);
        const double value = sane(at == told.end() ? std::nan("") : at->second, asked, file);
        double& all = values[input + "." + asked.fact];
        all = known.at(asked.fact) == OfMany::Sum ? all + value : std::max(all, value);
      }
    }
  }
  return values;
}

}  // namespace hpcbatch
