#include "cli/client/cancel_now.hpp"

#include "cli/client/engine_client.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace hpcbatch {

bool cancel_now(const Places& places, const boost::json::array& ids,
                std::chrono::milliseconds time) {
  HttpClient http(sockets_of(places), -1);
  const std::string body = boost::json::serialize(boost::json::object{{"ids", ids}});
  const Answer answer = http.request("POST", "/v1/tasks/cancel", body, time);
  return answer.outcome == Exchange::Answered && answer.status == 200;
}

}  // namespace hpcbatch
