// `hpcbatch plugin check`: holds a plugin against the contract of its kind, in a process of its own.
#pragma once

#include "hpcbatch/abi.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace hpcbatch::plugin_kit {

struct CheckAsked {
  std::filesystem::path file;
  std::string config;       ///< text: of a tool its file, of others what a site says of it
  std::string config_file;  ///< where that stands
  std::string directory;    ///< where a transport may write; empty: a new one in TMPDIR
};

/// What is heard while it is asked: {"plugin", "kind", "version", "fingerprint"} first, then
/// {"promise": words} when one is begun and {"good": true or false, "text": what is wrong} when it is
/// over.
using Heard = std::function<void(const boost::json::object&)>;

/// What speaks against it in one sentence; empty: it keeps the contract.  Throws std::exception where
/// it cannot be asked.
std::string check_plugin(const CheckAsked& asked, const Heard& heard);

// What is heard of a plugin that is checked, for people and as JSON.

/// A line for each promise, as it is begun and over.
void print_heard(const boost::json::object& heard);

/// All of it, put together: {"plugin", "kind", "version", "fingerprint", "promises": [{"promise",
/// "good", "text"}]}; one that is not over has neither "good" nor "text".
class HeardTogether {
 public:
  void add(const boost::json::object& heard);
  boost::json::object take();

 private:
  boost::json::object plugin_;
  boost::json::array promises_;
};

// The contract suites of the SDK, with the one plugin that is checked for their case.

/// To be called before GoogleTest is initialised: which suite has a case, and which.  Throws with one
/// sentence where a tool's file is none.
void set_case(hpcbatch_plugin_kind kind, const CheckAsked& asked);
/// Makes an object of the plugin and throws it away; throws what that throws.
void make_one();

// `hpcbatch plugin new`: a project that builds, made from the texts of the kit.

struct NewProject {
  std::string kind;                 ///< tool, scheduler or transport
  std::string name;                 ///< of the plugin
  std::filesystem::path directory;  ///< new, or empty
};

/// Writes it; the files, in order.  `kit`: where a folder for each kind lies; `prefix`: where hpcbatch
/// is installed.  Throws std::invalid_argument with one sentence, and has then written nothing.
std::vector<std::filesystem::path> write_project(const NewProject& project,
                                                 const std::filesystem::path& kit,
                                                 const std::filesystem::path& prefix);

// `hpcbatch plugin list`: what plugins were found where, and what was refused.

/// {"searched": [folder...], "plugins": [{"kind", "name", "version" or "refused", "path", "hides": [path...]}]}
boost::json::object list_plugins(const std::vector<std::filesystem::path>& search);
std::string list_text(const boost::json::object& list);

}  // namespace hpcbatch::plugin_kit
