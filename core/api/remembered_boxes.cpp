#include "api/remembered_boxes.hpp"

#include "dropbox/transfer.hpp"
#include "posix/replace_file.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// Throws boost::system::system_error or std::exception for what is no drop box.
DropboxSettings box_of(const json::value& value) {
  const json::object& object = value.as_object();
  DropboxSettings box;
  box.directory = json::value_to<std::string>(object.at("directory"));
  box.allow = json::value_to<std::vector<std::string>>(object.at("allow"));
  box.templates = json::value_to<std::vector<std::string>>(object.at("templates"));
  box.variables = json::value_to<std::map<std::string, std::string>>(object.at("variables"));
  if (!box.directory.starts_with('/'))
    throw std::invalid_argument("its directory is no absolute path");
  return box;
}

}  // namespace

RememberedBoxes read_remembered(const std::string& file) {
  RememberedBoxes remembered;
  std::ifstream in(file);
  if (!in) {
    const int why = errno;
    if (why != ENOENT)
      remembered.warnings.push_back(
          fmt::format("cannot read {}: {}; name the drop boxes again", file, std::strerror(why)));
    return remembered;
  }
  std::stringstream text;
  text << in.rdbuf();
  boost::system::error_code error;
  const json::value boxes = json::parse(text.str(), error);
  if (error || !boxes.is_array()) {
    remembered.warnings.push_back(fmt::format("{} is damaged; name the drop boxes again", file));
    return remembered;
  }
  for (const json::value& box : boxes.get_array()) {
    try {
      remembered.boxes.push_back(box_of(box));
    } catch (const std::exception& e) {
      remembered.warnings.push_back(
          fmt::format("an entry of {} is damaged ({}); name its drop box again: {}", file, e.what(),
                      json::serialize(box)));
    }
  }
  return remembered;
}

Result<void> write_remembered(const std::string& file, const std::vector<DropboxSettings>& boxes) {
  json::array list;
  for (const DropboxSettings& box : boxes) {
    list.push_back({{"directory", box.directory},
                    {"allow", json::value_from(box.allow)},
                    {"templates", json::value_from(box.templates)},
                    {"variables", json::value_from(box.variables)}});
  }
  errno = replace_file(AT_FDCWD, file, json::serialize(list) + "\n",
                       {.mode = 0600, .sync_folder = true});
  if (errno != 0) return errno_error("cannot write " + file);
  return {};
}

}  // namespace hpcbatch
