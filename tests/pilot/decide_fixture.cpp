#include "decide_fixture.hpp"

namespace hpcbatch::pilot {
namespace {

std::string list(const std::vector<unsigned>& numbers) {
  std::string text;
  for (const unsigned n : numbers) text += (text.empty() ? "" : ",") + std::to_string(n);
  return text;
}

}  // namespace

AttemptId id_of(unsigned n) {
  return {n, 0, 1, 7};
}

std::string to_text(const Action& action) {
  struct {
    std::string operator()(const Launch& a) const {
      std::string text = "run " + std::to_string(a.id.array);
      if (!a.placement.cpus.empty()) text += " cpus " + list(a.placement.cpus);
      if (!a.placement.gpus.empty()) text += " gpus " + list(a.placement.gpus);
      return text;
    }
    std::string operator()(const Return& a) const { return "return " + std::to_string(a.id.array); }
    std::string operator()(const Signal& a) const {
      constexpr const char* kTo[] = {"", " first", " steps"};
      return "signal " + std::to_string(a.id.array) + " " + std::to_string(a.number) +
             kTo[static_cast<int>(a.to)];
    }
    std::string operator()(const Stop& a) const {
      return std::string(a.by_force ? "kill " : "term ") + std::to_string(a.id.array) +
             (a.failure ? " " + std::string(hpcbatch::to_string(*a.failure)) : "");
    }
    std::string operator()(const Publish& a) const {
      return "publish " + std::to_string(a.id.array);
    }
    std::string operator()(const Discard& a) const {
      return "discard " + std::to_string(a.id.array);
    }
    std::string operator()(const Fail& a) const {
      return "fail " + std::to_string(a.id.array) + " " +
             std::string(hpcbatch::to_string(a.failure));
    }
    std::string operator()(const Forget& a) const { return "forget " + std::to_string(a.id.array); }
    std::string operator()(const SayLeaving& a) const { return "leaving " + a.reason; }
    std::string operator()(const WriteOutbox&) const { return "outbox"; }
    std::string operator()(const Exit& a) const { return "exit " + std::to_string(a.code); }
  } visitor;
  return std::visit(visitor, action);
}

}  // namespace hpcbatch::pilot
