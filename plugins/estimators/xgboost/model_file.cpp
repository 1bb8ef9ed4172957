#include "model_file.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string_view>

namespace hpcbatch::xgboost {
namespace {

constexpr std::string_view kTitle = "hpcbatch estimator xgboost 1\n";
constexpr std::size_t kSumLength = 17;  // with its line's end

/// FNV-1a (Fowler, Noll and Vo): against damage, not against malice.
std::string sum_of(std::string_view bytes) {
  std::uint64_t sum = 0xcbf29ce484222325U;
  for (const char c : bytes) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  std::array<char, kSumLength + 1> text{};
  std::snprintf(text.data(), text.size(), "%016llx\n", static_cast<unsigned long long>(sum));
  return text.data();
}

[[noreturn]] void damaged(const char* how) {
  throw std::runtime_error(std::string("this is no whole model of the estimator xgboost (") + how +
                           "): train it again");
}

}  // namespace

std::string to_bytes(const ModelFile& file) {
  std::string body;
  for (const std::string& name : file.features) body.append(name).append("\n");
  body.append("\n").append(file.trees);
  return std::string(kTitle).append(sum_of(body)).append(body);
}

ModelFile model_file_of(const std::string& bytes) {
  if (!bytes.starts_with(kTitle)) damaged("it begins otherwise");
  std::string_view rest = std::string_view(bytes).substr(kTitle.size());
  if (rest.size() < kSumLength) damaged("it is cut off");
  const std::string_view sum = rest.substr(0, kSumLength);
  rest.remove_prefix(kSumLength);
  if (sum != sum_of(rest)) damaged("its sum is wrong");
  ModelFile file;
  for (;;) {
    const auto end = rest.find('\n');
    if (end == std::string_view::npos) damaged("its columns have no end");
    const std::string_view name = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (name.empty()) break;
    file.features.emplace_back(name);
  }
  file.trees = rest;
  return file;
}

}  // namespace hpcbatch::xgboost
