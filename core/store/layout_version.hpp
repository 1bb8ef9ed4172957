// Which tables the store has: what an engine asks before it opens one.
#pragma once

namespace hpcbatch::store {

// 7: arrays say after how many failures they are given up; a program that knows 6 would go on.
inline constexpr const char* kLayoutVersion = "7";

}  // namespace hpcbatch::store
