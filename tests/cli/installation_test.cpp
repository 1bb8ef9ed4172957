// What doctor finds out from the outside.
#include "cli/verbs/doctor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <stdlib.h>

namespace hpcbatch {
namespace {

using testing::HasSubstr;
using testing::Not;

class InstallationTest : public testing::Test {
 public:
  ~InstallationTest() override { std::filesystem::remove_all(folder); }

 protected:
  InstallationTest() {
    std::string path = testing::TempDir() + "/hpcbatch-installation-XXXXXX";
    folder = ::mkdtemp(path.data());
  }
  std::string folder;
};

TEST_F(InstallationTest, TheFaultOfAnEarlierEngineIsNotThatOfTheLast) {
  const Places places{.home = folder};
  std::ofstream log(folder + "/engine.log");
  log << "2026-01-01T00:00:00.000 info listening on /home/me/socket\n"
         "hpcbatch: this process ends by SIGSEGV, by a fault in a plugin, while calling plugin x\n";
  log.flush();
  EXPECT_THAT(check_death(places).text, HasSubstr("its log says: this process ends by SIGSEGV"));
  log << "2026-01-01T00:00:01.000 info listening on /home/me/socket\n";
  log.flush();
  EXPECT_THAT(check_death(places).text, Not(HasSubstr("SIGSEGV")));
  log << "hpcbatch: this process ends by SIGBUS\n"
         R"({"time":"2026-01-01T00:00:02.000Z","level":"info","message":"listening on /x"})"
      << "\n";
  log.flush();
  EXPECT_THAT(check_death(places).text, Not(HasSubstr("SIGBUS")));
}

TEST_F(InstallationTest, PluginsAreLookedForAsTheEngineDoes) {
  std::filesystem::create_directories(folder + "/libexec/hpcbatch");
  EXPECT_THAT(check_plugins(folder + "/bin/hpcbatch").text, HasSubstr(folder + "/libexec/"));
  std::filesystem::create_directories(folder + "/lib/hpcbatch");
  EXPECT_THAT(check_plugins(folder + "/bin/hpcbatch").text, HasSubstr(folder + "/lib/"));
}

}  // namespace
}  // namespace hpcbatch
