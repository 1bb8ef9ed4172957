// What is heard of a plugin that is checked, for people and as JSON.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

namespace hpcbatch::plugin_kit {

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

}  // namespace hpcbatch::plugin_kit
