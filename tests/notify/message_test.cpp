#include "notify/message.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/json/parse.hpp>

namespace hpcbatch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

store::SubmissionEnd done(std::uint64_t id) {
  return {.first = ArrayId{id},
          .last = ArrayId{id},
          .client = "shell:me",
          .name = "fit",
          .submitted = {},
          .ended = {},
          .totals = {.done = 100},
          .first_failure = {}};
}

store::SubmissionEnd failed(std::uint64_t id) {
  store::SubmissionEnd end = done(id);
  end.last = ArrayId{id + 2};
  end.totals = {.done = 96, .failed = 3, .cancelled = 1};
  store::ResultRow row;
  row.node = "node7";
  row.outcome.failure = Failure::ToolFailed;
  row.outcome.exit_code = 3;
  row.outcome.message = "it\nfailed \x1b[31m";
  end.first_failure = store::FirstFailure{{ArrayId{id + 1}, 4}, row};
  return end;
}

TEST(NotifyMessage, HasTheCountsAndTheFirstFailure) {
  EXPECT_EQ(subject_of({done(12)}), "12 (fit) done: of 100 tasks 100 done");
  EXPECT_EQ(subject_of({failed(12)}), "12-14 (fit) failed: 3 of 100 tasks failed");
  EXPECT_EQ(subject_of({done(12), failed(20)}), "2 submissions failed: 3 of 200 tasks failed");
  const std::string text = text_of({failed(12)});
  EXPECT_THAT(text, HasSubstr("of 100 tasks 96 done, 3 failed, 1 cancelled"));
  EXPECT_THAT(text,
              HasSubstr("first failure: 13.4: tool_failed, exit code 3 on node7: it\\nfailed"));
  EXPECT_THAT(text, HasSubstr("hpcbatch explain 13.4"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  const auto json = to_json({failed(12)});
  const auto& one = json.at("submissions").as_array().at(0).as_object();
  EXPECT_EQ(one.at("state").as_string(), "failed");
  EXPECT_EQ(one.at("counts").as_object().at("failed").to_number<int>(), 3);
  EXPECT_EQ(one.at("first_failure").as_object().at("exit_code").to_number<int>(), 3);
}

TEST(NotifyMessage, ThousandsOfSubmissionsAreToldShortly) {
  const std::vector<store::SubmissionEnd> many(5000, done(1));
  EXPECT_LT(text_of(many).size(), 5000U);
  EXPECT_THAT(text_of(many), HasSubstr("and 4950 more"));
}

TEST(NotifyMessage, ANameMakesNoHeader) {
  store::SubmissionEnd hostile = done(1);
  hostile.name = "x\nBcc: all@example.org\n\u00e9";
  const NotifyTarget target{
      .kind = NotifyTarget::Kind::Mail, .to = "me@x.org", .only_failed = false};
  const Parcel mail = parcel_for(target, {hostile});
  EXPECT_THAT(mail.argv, ElementsAre("sendmail", "-oi", "-t"));
  EXPECT_THAT(mail.input, testing::StartsWith("To: me@x.org\nSubject: hpcbatch: 1 (x\\nBcc"));
  EXPECT_THAT(mail.input.substr(0, mail.input.find("\n\n")), Not(HasSubstr("\nBcc")));
}

TEST(NotifyMessage, AWebhooksAddressIsNoArgument) {
  const NotifyTarget target{
      .kind = NotifyTarget::Kind::Webhook, .to = "https://x.org/secret", .only_failed = false};
  const Parcel post = parcel_for(target, {done(1)});
  EXPECT_THAT(post.argv, Not(testing::Contains(HasSubstr("secret"))));
  EXPECT_THAT(post.handed_over, HasSubstr("url = \"https://x.org/secret\"\n"));
  EXPECT_THAT(post.handed_over, HasSubstr("proto = \"=https\""));
  EXPECT_TRUE(boost::json::parse(post.input).is_object());
}

TEST(NotifyMessage, ACommandFindsItInItsEnvironment) {
  const NotifyTarget target{
      .kind = NotifyTarget::Kind::Program, .to = "/bin/told", .only_failed = false};
  const Parcel command = parcel_for(target, {failed(12), done(20)});
  EXPECT_THAT(command.argv, ElementsAre("/bin/told"));
  EXPECT_THAT(command.variables,
              testing::IsSupersetOf({"HPCBATCH_NOTICE_IDS=12-14 20", "HPCBATCH_NOTICE_STATE=failed",
                                     "HPCBATCH_NOTICE_FAILED=3"}));
}

}  // namespace
}  // namespace hpcbatch
