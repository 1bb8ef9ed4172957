#include "hardware/gpu_counts.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <stdexcept>

namespace hpcbatch {
namespace {

constexpr std::string_view kAny = "any";
constexpr char kEither = '|';

bool is_of_kinds(char c) {
  constexpr std::string_view kBetween = "._-+";
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || kBetween.find(c) != kBetween.npos;
}

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw std::invalid_argument("'" + std::string(text) + "' is not a number of GPUs; " +
                              std::string(why));
}

double count_in(std::string_view text, std::string_view whole) {
  const auto count = number_in(text);
  if (!count || *count < 0) refuse(whole, "say 1, a100 or a100:2");
  if (const auto why = wrong_gpu_count(*count)) refuse(whole, *why);
  return *count;
}

}  // namespace

const std::vector<std::string> kGpuTerms{"count", "kind", "memory", "capability"};

bool is_gpu_term(std::string_view word) {
  return std::find(kGpuTerms.begin(), kGpuTerms.end(), word) != kGpuTerms.end();
}

std::optional<std::string> wrong_gpu_count(double count) {
  if (count > 1e6) return "that is more than could be had anywhere";
  if (count <= 1 || count == std::floor(count)) return std::nullopt;
  return "a task has whole ones, or a part of one below 1";
}

std::optional<std::string> wrong_gpu_kinds(std::string_view kinds) {
  if (kinds.find(',') != kinds.npos)
    return "where either would do, say a100|v100; a part of one is 0.25";
  for (std::string_view rest = kinds;;) {
    const auto end = rest.find(kEither);
    const std::string_view kind = rest.substr(0, end);
    if (kind.empty()) return "between and around | stand kinds, as in a100|v100";
    if (kind == kAny && kind != kinds) return "'any' stands alone";
    if (!std::all_of(kind.begin(), kind.end(), is_of_kinds))
      return "a kind of GPU has letters, digits and ._-+ alone, as a100; a part of one is 0.25";
    if (end == rest.npos) return std::nullopt;
    rest.remove_prefix(end + 1);
  }
}

std::pair<std::string, double> parse_gpus(std::string_view text) {
  if (number_in(text)) return {"", count_in(text, text)};
  const std::size_t colon = text.find(':');
  const std::string_view kinds = text.substr(0, colon);
  if (kinds.empty()) refuse(text, "say 1, a100 or a100:2");
  const double count = colon == text.npos ? 1 : count_in(text.substr(colon + 1), text);
  if (const auto why = wrong_gpu_kinds(kinds)) refuse(text, *why);
  return {kinds == kAny ? std::string() : std::string(kinds), count};
}

}  // namespace hpcbatch
