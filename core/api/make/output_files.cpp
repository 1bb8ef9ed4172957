#include "api/make/output_files.hpp"

#include "model/placeholders.hpp"
#include "wire/wire.pb.h"

#include <fmt/format.h>

namespace hpcbatch {
namespace {

constexpr std::string_view kNowhere = "/dev/null";

std::string sentence(std::string_view what, const std::string& file) {
  if (file == kNowhere) return fmt::format("{} is thrown away, as was asked for", what);
  return fmt::format("{} goes to {}", what, file);
}

}  // namespace

OutputFiles output_files(const wire::Start& start) {
  return {start.standard_output(), start.standard_error()};
}

OutputFiles output_files(const std::string& recipe, TaskId task, const std::optional<Item>& item) {
  return output_files(start_from_bytes(recipe), filled_in(recipe), task, item);
}

OutputFiles output_files(const wire::Start& start, Filled filled, TaskId task,
                         const std::optional<Item>& item) {
  OutputFiles files = output_files(start);
  if (filled == Filled::Nothing) return files;
  const std::uint32_t index = task.index - (start.from_zero() ? 1 : 0);
  return {with_places(files.out, task, item, index), with_places(files.err, task, item, index)};
}

void put(boost::json::object& object, const OutputFiles& files) {
  if (!files.out.empty()) object["stdout"] = files.out;
  if (!files.err.empty()) object["stderr"] = files.err;
}

void add(boost::json::array& details, const OutputFiles& files) {
  const auto tell = [&](std::string_view what, const std::string& file) {
    if (!file.empty()) details.push_back(boost::json::string(sentence(what, file)));
  };
  if (files.out == files.err) return tell("what it prints", files.out);
  tell("its standard output", files.out);
  tell("its standard error", files.err);
}

}  // namespace hpcbatch
