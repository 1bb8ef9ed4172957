// Values of a request's JSON as what they must be.  `what` names the value in the sentence of the
// BadRequest that is thrown where it is something else.
#pragma once

#include "model/ids.hpp"
#include "model/resources.hpp"

#include <boost/json/value.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace hpcbatch {

/// The request is wrong; `what()` is the sentence for the client.
struct BadRequest : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Who writes less of memory has meant another unit.
inline constexpr Amount kLeastMemory = Amount::of(std::int64_t{1} << 20);

/// Names of amounts that a task asks for.  All else that a client may send is bounded by the largest
/// request (http_server.cpp) alone, and is read in linear time.
inline constexpr std::size_t kMostAmounts = 100;

/// Throws where there are more.
void check_amounts(const boost::json::object& amounts, const std::string& what);
/// UTF-8 without a zero byte.
std::string text_of(const boost::json::value& value, const std::string& what);
std::vector<std::string> texts_of(const boost::json::value& value, const std::string& what);
/// What the kernel takes as it is: arguments, items, paths, values of variables.  Any bytes but
/// zero: names of files are often older than UTF-8.
std::string bytes_of(const boost::json::value& value, const std::string& what);
std::vector<std::string> list_of_bytes(const boost::json::value& value, const std::string& what);
/// Names as of an environment's variables; both are bytes.
std::map<std::string, std::string> text_map_of(const boost::json::value& value,
                                               const std::string& what);
/// From 0 up.
double number_of(const boost::json::value& value, const std::string& what);
std::int64_t whole_of(const boost::json::value& value, const std::string& what, std::int64_t least,
                      std::int64_t most);
bool bool_of(const boost::json::value& value, const std::string& what);
/// Bytes as a number, or a text such as 8G.
Amount size_of(const boost::json::value& value, const std::string& what);
/// Seconds as a number, or a text such as 1h30m; more than nothing.
Duration duration_of(const boost::json::value& value, const std::string& what);
/// Absolute.
std::string path_of(const boost::json::value& value, const std::string& what);
/// A path, or one that an item gives.
std::string file_of(const boost::json::value& value, const std::string& what);
/// Octal digits.
std::uint32_t umask_of(const boost::json::value& value, const std::string& what);
std::string plain_word(const boost::json::value& value, const std::string& what);
/// A list of words, or one of them; sorted, each once.
std::vector<std::string> plain_words(const boost::json::value& value, const std::string& what);

}  // namespace hpcbatch
