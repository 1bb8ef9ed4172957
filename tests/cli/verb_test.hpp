// What the tests of the verbs share: a home, a fake engine in it, and the command line run against
// it.
#pragma once

#include "cli/client/http_client.hpp"
#include "cli/process/process.hpp"
#include "cli_process.hpp"
#include "fake_engine.hpp"

#include <gmock/gmock.h>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hpcbatch::test {

class VerbTest : public testing::Test {
 protected:
  using Handle = FakeEngine::Handler;

  /// Answers by `METHOD TARGET`; what is not named is 404.
  void engine_answers(const std::map<std::string, std::string>& answers) {
    engine_does([answers](const FakeRequest& request, FakeConnection& connection) {
      const auto at = answers.find(request.method + " " + request.target);
      if (at == answers.end())
        connection.answer(404, R"({"error": "there is no such thing"})");
      else
        connection.answer(200, at->second);
    });
  }
  void engine_does(Handle handle) {
    engine_.reset();
    ::unlink((home() + "/socket").c_str());
    engine_ = std::make_unique<FakeEngine>(home() + "/socket", std::move(handle));
  }
  void engine_ends() { engine_.reset(); }

  /// Who submits here, as a part of a target.
  static std::string me() { return encode_part(client_name()); }
  FakeEngine& engine() { return *engine_; }
  const std::string& home() const { return folder_.path(); }
  CliResult cli(const std::vector<std::string>& words, const CliOptions& options = {}) const {
    return run_cli(home(), words, options);
  }
  /// The body of the first such request.
  boost::json::object body_of(const std::string& method, const std::string& target) {
    return boost::json::parse(engine().wait_for(method, target).body).as_object();
  }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(home() + "/" + name) << text;
    return home() + "/" + name;
  }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<FakeEngine> engine_;
};

}  // namespace hpcbatch::test
