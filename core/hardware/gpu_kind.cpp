#include "hardware/gpu_kind.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace hpcbatch {
namespace {

struct KnownGpu {
  std::string_view name;
  std::uint64_t gigabytes;
  unsigned capability;
};
constexpr std::array kKnownGpus{
    KnownGpu{"k40", 12, 35},     KnownGpu{"k80", 12, 37},       KnownGpu{"m40", 12, 52},
    KnownGpu{"m60", 8, 52},      KnownGpu{"p4", 8, 61},         KnownGpu{"p40", 24, 61},
    KnownGpu{"p100", 16, 60},    KnownGpu{"gtx1080ti", 11, 61}, KnownGpu{"v100", 16, 70},
    KnownGpu{"titanv", 12, 70},  KnownGpu{"t4", 16, 75},        KnownGpu{"rtx6000", 24, 75},
    KnownGpu{"rtx8000", 48, 75}, KnownGpu{"rtx2080ti", 11, 75}, KnownGpu{"a100", 40, 80},
    KnownGpu{"a30", 24, 80},     KnownGpu{"a2", 16, 86},        KnownGpu{"a10", 24, 86},
    KnownGpu{"a16", 16, 86},     KnownGpu{"a40", 48, 86},       KnownGpu{"a4000", 16, 86},
    KnownGpu{"a5000", 24, 86},   KnownGpu{"a6000", 48, 86},     KnownGpu{"rtx3090", 24, 86},
    KnownGpu{"rtx4090", 24, 89}, KnownGpu{"l4", 24, 89},        KnownGpu{"l40", 48, 89},
    KnownGpu{"l40s", 48, 89},    KnownGpu{"h100", 80, 90},      KnownGpu{"h200", 141, 90},
    KnownGpu{"gh200", 96, 90},   KnownGpu{"b200", 180, 100},    KnownGpu{"gb200", 186, 100}};

/// In small letters, without what stands between.
std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts(1);
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      parts.back() += lower_case(c);
    else if (!parts.back().empty())
      parts.emplace_back();
  }
  return parts;
}

/// "80gb" or "80g".
std::optional<std::uint64_t> gigabytes_in(const std::string& part) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(part.data() + part.size() - end));
  if (error != std::errc{} || number == 0 || (unit != "g" && unit != "gb" && unit != "gib"))
    return std::nullopt;
  return number;
}

/// Of a part of a GPU (Multi-Instance GPU): "3g", "20gb" or "3g20gb" is three of its seven slices with
/// 20 GB.
std::optional<std::uint64_t> gigabytes_of_slices(const std::string& part, const std::string& next) {
  const auto letter = part.find_first_not_of("0123456789");
  if (letter == 0 || letter == std::string::npos || part[letter] != 'g') return std::nullopt;
  const std::string memory = letter + 1 == part.size() ? next : part.substr(letter + 1);
  return memory.ends_with("b") ? gigabytes_in(memory) : std::nullopt;
}

const KnownGpu* known(std::string_view part) {
  const auto find = [](std::string_view name) {
    const auto found = std::find_if(kKnownGpus.begin(), kKnownGpus.end(),
                                    [&](const KnownGpu& gpu) { return gpu.name == name; });
    return found == kKnownGpus.end() ? nullptr : &*found;
  };
  if (const KnownGpu* gpu = find(part)) return gpu;
  // V100S, A100X: the same with another board.
  const bool is_variant = part.size() > 1 && (part.back() == 's' || part.back() == 'x');
  return is_variant ? find(part.substr(0, part.size() - 1)) : nullptr;
}

constexpr std::string_view kAny = "any";
constexpr char kEither = '|';

bool is_of_kinds(char c) {
  constexpr std::string_view kBetween = "._-+";
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || kBetween.find(c) != kBetween.npos;
}

std::optional<double> finite_in(std::string_view text) {
  const auto value = number_in<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw std::invalid_argument("'" + std::string(text) + "' is not a number of GPUs; " +
                              std::string(why));
}

double count_in(std::string_view text, std::string_view whole) {
  const auto count = finite_in(text);
  if (!count || *count < 0) refuse(whole, "say 1, a100 or a100:2");
  if (const auto why = wrong_gpu_count(*count)) refuse(whole, *why);
  return *count;
}

}  // namespace

std::optional<GpuKind> gpu_kind(std::string_view name) {
  const std::vector<std::string> parts = parts_of(name);
  const KnownGpu* found = nullptr;
  std::optional<std::uint64_t> gigabytes, of_slices;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!gigabytes) gigabytes = gigabytes_in(parts[i]);
    if (!of_slices)
      of_slices = gigabytes_of_slices(parts[i], i + 1 < parts.size() ? parts[i + 1] : "");
    if (found != nullptr) continue;
    if (i + 1 < parts.size()) found = known(parts[i] + parts[i + 1]);
    if (found == nullptr) found = known(parts[i]);
  }
  if (found == nullptr) return std::nullopt;
  return GpuKind{of_slices.value_or(gigabytes.value_or(found->gigabytes)) << 30, found->capability};
}

bool is_gpu_called(std::string_view name, std::string_view kind) {
  const auto words_of = [](std::string_view text) {
    auto words = parts_of(text);
    if (words.back().empty()) words.pop_back();
    return words;
  };
  const std::vector<std::string> words = words_of(name), asked = words_of(kind);
  if (asked.empty()) return false;
  // Some of its words in their order, as `a100_3g.20gb`, or some that stand together.
  auto next = asked.begin();
  for (const std::string& word : words)
    if (next != asked.end() && *next == word) ++next;
  if (next == asked.end()) return true;
  std::string wanted;
  for (const std::string& word : asked) wanted += word;
  for (std::size_t first = 0; first < words.size(); ++first) {
    std::string together;
    for (std::size_t at = first; at < words.size() && together.size() < wanted.size(); ++at) {
      together += words[at];
      if (together == wanted) return true;
    }
  }
  return false;
}

bool meets(const GpuKind& kind, const GpuTerms& terms) {
  return kind.memory >= terms.memory && kind.capability >= terms.capability;
}

std::optional<unsigned> parse_capability(std::string_view text) {
  const std::size_t dot = text.find('.');
  const auto major = number_in<unsigned>(text.substr(0, dot));
  if (!major || *major == 0 || *major > 99) return std::nullopt;
  if (dot == std::string_view::npos) return *major * 10;
  const auto minor = number_in<unsigned>(text.substr(dot + 1));
  if (!minor || *minor > 9) return std::nullopt;
  return *major * 10 + *minor;
}

std::string show_capability(unsigned capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

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
  if (finite_in(text)) return {"", count_in(text, text)};
  const std::size_t colon = text.find(':');
  const std::string_view kinds = text.substr(0, colon);
  if (kinds.empty()) refuse(text, "say 1, a100 or a100:2");
  const double count = colon == text.npos ? 1 : count_in(text.substr(colon + 1), text);
  if (const auto why = wrong_gpu_kinds(kinds)) refuse(text, *why);
  return {kinds == kAny ? std::string() : std::string(kinds), count};
}

}  // namespace hpcbatch
