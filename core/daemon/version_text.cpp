#include "daemon/version_text.hpp"

#include "hpcbatch/abi.h"
#include "store/layout.hpp"
#include "wire/encrypted_link.hpp"

#include <fmt/format.h>

#include <string_view>

namespace hpcbatch {

std::string version_text() {
  constexpr std::string_view kCommit = HPCBATCH_COMMIT;
  return fmt::format("hpcbatch {}\n{}, wire {}, store {}, plugins {}.{}\n", HPCBATCH_VERSION,
                     kCommit.empty() ? "of a checkout" : fmt::format("commit {}", kCommit),
                     wire::kNewestVersion, store::kLayoutVersion, HPCBATCH_ABI_MAJOR,
                     HPCBATCH_ABI_MINOR);
}

}  // namespace hpcbatch
