#include "pilot/policy/container_end.hpp"

#include <array>
#include <cstdlib>
#include <string_view>

namespace hpcbatch::pilot {
namespace {

constexpr std::size_t kLength = 32;
struct SaidWord {
  ContainerReport::Said said;
  std::string_view word;
};
constexpr std::array<SaidWord, 4> kWords = {{{ContainerReport::Said::Begun, "begun"},
                                             {ContainerReport::Said::CannotRun, "cannot-run"},
                                             {ContainerReport::Said::Exited, "exited"},
                                             {ContainerReport::Said::Signalled, "signalled"}}};

}  // namespace

std::string to_text(const ContainerReport& report) {
  std::string text;
  for (const SaidWord& each : kWords) {
    if (each.said == report.said)
      text = std::string(each.word) + " " + std::to_string(report.value);
  }
  text.resize(kLength - 1, ' ');
  return text + '\n';
}

ContainerReport container_report(const std::string& text) {
  if (text.size() != kLength) return {};
  const std::size_t blank = text.find(' ');
  for (const SaidWord& each : kWords) {
    if (std::string_view(text).substr(0, blank) == each.word)
      return {each.said, std::atoi(text.c_str() + blank)};
  }
  return {};
}

}  // namespace hpcbatch::pilot
