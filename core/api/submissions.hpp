// What there is to see of submissions as a whole.
#pragma once

#include "api/routes.hpp"
#include "runtime/runtime.hpp"

#include <boost/json/object.hpp>

namespace hpcbatch {

class Submissions {
 public:
  explicit Submissions(Runtime& runtime) : runtime_(runtime) {}
  void add_to(Routes& routes);
  void explain(const store::ArrayRow& row, const ReplyPtr& reply);

 private:
  struct Standing;
  Standing live_ones(ArrayId id) const;
  Standing standing(const store::ArrayOverview& whole) const;
  static boost::json::object counts_json(const Standing& now);
  boost::json::object array_json(const store::ArrayOverview& whole) const;
  void list(const HttpRequest& request, const ReplyPtr& reply);
  void show(ArrayId id, const ReplyPtr& reply);

  Runtime& runtime_;
};

}  // namespace hpcbatch
