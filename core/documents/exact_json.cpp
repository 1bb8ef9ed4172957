#include "documents/exact_json.hpp"

#include <boost/json/basic_parser_impl.hpp>

#include <charconv>
#include <utility>

namespace hpcbatch {
namespace {

class Whole : public JsonMaker<Whole> {
 public:
  void begin(boost::json::storage_ptr storage) { stack_.reset(std::move(storage)); }
  void has_value() {}
  boost::json::value take() { return stack_.release(); }
};

}  // namespace

double exact_number(double number, std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && rest == end ? value : number;
}

boost::json::value parse_json(std::string_view text, boost::system::error_code& error,
                              boost::json::storage_ptr storage,
                              const boost::json::parse_options& options) {
  error.clear();
  boost::json::basic_parser<Whole> parser{options};
  parser.handler().begin(std::move(storage));
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  if (!error && read < text.size()) error = boost::json::error::extra_data;
  return error ? boost::json::value() : parser.handler().take();
}

}  // namespace hpcbatch
