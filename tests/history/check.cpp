#include "history/promise.hpp"

namespace hpcbatch::history {

std::vector<Breach> check(const History& history, const Options& options) {
  std::vector<Breach> breaches;
  for (const auto& make : {submissions, results, attempts, waste, allocations}) {
    const std::unique_ptr<Promise> promise = make(options, breaches);
    for (std::size_t at = 0; at < history.size(); ++at) promise->see(at, history[at]);
    promise->end();
  }
  return breaches;
}

std::string to_text(const Breach& breach, const History& history) {
  std::string text = breach.promise + " is broken: " + breach.text + "\n";
  for (const std::size_t at : breach.records) text += "  " + wire::to_line(history.at(at));
  return text;
}

}  // namespace hpcbatch::history
