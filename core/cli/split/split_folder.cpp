#include "cli/split/split_folder.hpp"

#include "cli/process/exit.hpp"
#include "cli/show/values.hpp"
#include "cli/split/split_tasks.hpp"
#include "cli/tasks/submission.hpp"
#include "posix/regular_file.hpp"
#include "posix/replace_file.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <fcntl.h>
#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>

namespace hpcbatch {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

constexpr const char* kStateFile = "split.json";
constexpr std::size_t kLargestState = std::size_t{1} << 30;

json::object state_in(const std::string& file) {
  const std::string text = read_regular(AT_FDCWD, file, kLargestState, Links::Followed).text;
  json::error_code error;
  const json::value found = json::parse(text, error);
  return !error && found.is_object() ? found.get_object() : json::object{};
}

/// Results of parts and merges, lists, and what is kept of them.
bool is_a_splits(std::string name) {
  if (name == kStateFile || name == "pieces" || name.starts_with("merge")) return true;
  if (name.ends_with(".list")) name.resize(name.size() - 5);
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) != 0 &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == 'a' || c == 'b';
         });
}

}  // namespace

SplitFolder::SplitFolder(std::string path, const std::vector<std::string>& words)
    : path_(std::move(path)) {
  const std::string fingerprint = std::to_string(fingerprint_of(words));
  const std::string state = path_ + "/" + kStateFile;
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) throw CommandError(kExitUsage, "cannot make " + path_ + ": " + error.message());
  if (fs::exists(state, error)) {
    const json::object before = state_in(state);
    if (text_at(before, "of") != fingerprint)
      throw CommandError(kExitUsage,
                         path_ +
                             " belongs to another split, or to this one before its files, its "
                             "command or its options changed: remove the folder to begin anew, "
                             "or name another with --parts");
    key_ = text_at(before, "key");
    return;
  }
  if (!fs::is_empty(path_, error) || error)
    throw CommandError(kExitUsage, path_ +
                                       " has files in it and is no split's folder: name another "
                                       "with --parts");
  key_ = random_key();
  const json::object now{{"of", fingerprint}, {"key", key_}};
  if (const int failed = replace_file(AT_FDCWD, state, json::serialize(now) + "\n", {});
      failed != 0)
    throw CommandError(kExitUsage, "cannot write " + state + ": " + std::strerror(failed));
}

void SplitFolder::remove() const {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, error)) {
    std::error_code kept;
    if (is_a_splits(entry.path().filename().string())) fs::remove(entry.path(), kept);
  }
  fs::remove(path_, error);
}

}  // namespace hpcbatch
