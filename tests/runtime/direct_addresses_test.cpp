// An engine's machine changes its address, and pilots are told where they reach it now.
#include "sites/machine.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

namespace hpcbatch {
namespace {

class DirectDoorsTest : public ::testing::Test {
 protected:
  DirectDoorsTest() {
    for (const char* name : {"near", "vpn"}) {
      Site& site = sites_.emplace_back();
      site.name = name;
      site.link = LinkKind::Direct;
    }
    sites_[1].interface = "10.8.0.2";
  }
  void TearDown() override { std::filesystem::remove(file_); }

  DirectAddresses doors() {
    return DirectAddresses(
        file_, [this] { return outward_; },
        [this](const std::string& address, std::uint16_t port) -> Result<std::uint16_t> {
          ++tried_;
          if (address == absent_) return Error{Error::Kind::Rejected, "no such address"};
          return port != 0 ? port : ++next_port_;
        });
  }
  std::string text_of(const DirectAddresses& doors, std::size_t site) {
    std::string text;
    for (const wire::Address& at : doors.of(sites_[site]))
      text += (text.empty() ? "" : " ") + at.place + ":" + std::to_string(at.port);
    return text;
  }

  std::vector<Site> sites_;
  std::vector<std::string> outward_{"10.0.0.1"};
  std::string absent_;
  std::uint16_t next_port_{1000};
  unsigned tried_{0};
  std::string file_{"/tmp/hpcbatch-doors-" + std::to_string(::getpid())};
};

TEST_F(DirectDoorsTest, StayWhereTheyAre) {
  DirectAddresses here = doors();
  EXPECT_TRUE(here.look(sites_));
  EXPECT_EQ(text_of(here, 0), "10.0.0.1:1001");
  EXPECT_EQ(text_of(here, 1), "10.8.0.2:1002");
  EXPECT_FALSE(here.look(sites_));
  EXPECT_EQ(tried_, 2U);
}

TEST_F(DirectDoorsTest, GoWithTheMachine) {
  DirectAddresses here = doors();
  here.look(sites_);
  outward_ = {};
  EXPECT_FALSE(here.look(sites_)) << "no way out for a moment";
  EXPECT_EQ(text_of(here, 0), "10.0.0.1:1001");
  outward_ = {"192.168.3.4"};
  EXPECT_TRUE(here.look(sites_));
  EXPECT_EQ(text_of(here, 0), "192.168.3.4:1003");
  EXPECT_EQ(text_of(here, 1), "10.8.0.2:1002");
  outward_ = {"10.0.0.1"};
  EXPECT_TRUE(here.look(sites_));
  EXPECT_EQ(text_of(here, 0), "10.0.0.1:1001");
}

TEST_F(DirectDoorsTest, OneThatIsNotThereKeepsNobodyAndComesLater) {
  absent_ = "10.8.0.2";
  DirectAddresses here = doors();
  EXPECT_TRUE(here.look(sites_));
  EXPECT_EQ(text_of(here, 0), "10.0.0.1:1001");
  EXPECT_EQ(text_of(here, 1), "10.8.0.2:9");
  EXPECT_FALSE(here.look(sites_));
  absent_.clear();
  EXPECT_TRUE(here.look(sites_));
  EXPECT_EQ(text_of(here, 1), "10.8.0.2:1002");
}

TEST_F(DirectDoorsTest, TakeThePortsOfTheLastEngine) {
  doors().look(sites_);
  next_port_ = 2000;
  absent_ = "10.8.0.2";
  DirectAddresses again = doors();
  again.look(sites_);
  EXPECT_EQ(text_of(again, 0), "10.0.0.1:1001");
  EXPECT_EQ(text_of(again, 1), "10.8.0.2:1002") << "it will probably be that";
}

TEST_F(DirectDoorsTest, AllAddressesThatMayBeRightAreTold) {
  outward_ = {"130.1.2.3", "10.0.0.1", "10.1.0.1"};
  absent_ = "10.0.0.1";
  DirectAddresses here = doors();
  EXPECT_TRUE(here.look(sites_));
  EXPECT_EQ(text_of(here, 0), "130.1.2.3:1001 10.1.0.1:1002");
  absent_.clear();
  EXPECT_TRUE(here.look(sites_));
  EXPECT_EQ(text_of(here, 0), "130.1.2.3:1001 10.0.0.1:1004 10.1.0.1:1002");
}

TEST_F(DirectDoorsTest, LoopbackIsToldToPilotsOfThisMachineAlone) {
  outward_ = {};
  sites_.resize(1);
  DirectAddresses here = doors();
  EXPECT_FALSE(here.look(sites_));
  EXPECT_EQ(text_of(here, 0), "");
  sites_[0].name = "own";
  sites_[0].scheduler = "local";
  sites_[0].transport = "shared_fs";
  EXPECT_TRUE(here.look(sites_));
  EXPECT_EQ(text_of(here, 0), "127.0.0.1:1001");
  sites_[0].name = "behind a login";
  sites_[0].transport = "ssh";
  EXPECT_FALSE(here.look(sites_));
  EXPECT_EQ(text_of(here, 0), "");
  outward_ = {"::1", "10.0.0.1"};
  EXPECT_TRUE(here.look(sites_));
  EXPECT_EQ(text_of(here, 0), "10.0.0.1:1002");
  sites_[0].name = "as it was told";
  sites_[0].interface = "127.0.0.1";
  EXPECT_TRUE(here.look(sites_));
  EXPECT_EQ(text_of(here, 0), "127.0.0.1:1001");
}

}  // namespace
}  // namespace hpcbatch
