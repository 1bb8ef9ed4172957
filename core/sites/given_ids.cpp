#include "sites/given_ids.hpp"

#include "wire/whole_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>

namespace hpcbatch {
namespace {

constexpr const char* kFirstWord = "hpcbatch-given-1";

std::string file_of(const std::string& workspace, const std::string& engine) {
  return workspace + "/given-" + engine;
}

}  // namespace

GivenIds read_given_ids(const std::string& workspace, const std::string& engine) {
  const auto text = wire::read_file(file_of(workspace, engine), wire::Readers::OwnerOnly);
  if (!text) return {};
  std::istringstream words(*text);
  std::string first;
  GivenIds given;
  if (!(words >> first >> given.highest >> given.starts) || first != kFirstWord) return {};
  return given;
}

void write_given_ids(const std::string& workspace, const std::string& engine,
                     const GivenIds& given) {
  std::error_code error;
  if (!std::filesystem::is_directory(workspace, error)) return;
  (void)wire::replace_file(file_of(workspace, engine),
                           fmt::format("{} {} {}\n", kFirstWord, given.highest, given.starts),
                           wire::Readers::OwnerOnly, false);
}

}  // namespace hpcbatch
