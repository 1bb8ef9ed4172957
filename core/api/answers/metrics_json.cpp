#include "api/answers/metrics_json.hpp"

#include "api/answers/to_json.hpp"
#include "documents/exact_json.hpp"
#include "documents/plain_numbers.hpp"

namespace hpcbatch {

void put_metrics(boost::json::object& object, const std::string& text) {
  if (text.empty()) return;
  boost::system::error_code error;
  boost::json::value value = parse_json(text, error);
  if (!error && holds_infinity(value)) error = boost::json::error::exponent_overflow;
  if (!error && value.is_object())
    object["metrics"] = std::move(value);
  else
    object["metrics_error"] = "what it wrote to HPCBATCH_METRICS is no JSON object" +
                              (error ? ": " + error.message() : std::string());
}

}  // namespace hpcbatch
