#include "cancelling.hpp"

#include "dialect.hpp"

namespace hpcbatch::pbs {
namespace {

/// qdel takes numbers, and each name is looked up even where one is known: after an unclear submit
/// there may be two batch jobs of one name. A name nobody knows is no error, nor is one that ends
/// meanwhile; SLURM's qdel has a code for those and says nothing.
constexpr const char* kDelete = R"sh(
user=$(id -un) || exit
set -f  # an array is called 12[]
failed=0
listed=
if [ "$dialect" = slurm-torque ]; then
  listed=$(qstat -f); code=$?
  case $code:$listed in 0:*|153:) ;; *) exit "$code" ;; esac
fi
numbers() {
  if [ "$dialect" != slurm-torque ]; then qselect -u "$user" -N "$1"; return; fi
  printf '%s\n' "$listed" | awk -v name="$1" -v user="$user" '
    /^Job Id:/ { number = $3; named = mine = 0 }
    $1 == "Job_Name" { named = NF == 3 && $3 == name }
    $1 == "Job_Owner" { split($3, owner, "@"); mine = owner[1] == user }
    $1 == "job_state" && named && mine && $3 != "C" { print number }'
}
for name in "$@"; do
  for number in $(numbers "$name" || echo failed); do
    if [ "$number" = failed ]; then failed=1; continue; fi
    said=$(qdel "$number" 2>&1) && continue
    case $said in
    ''|*'Unknown Job'*|*'has finished'*|*'invalid for state'*) ;;
    *) printf '%s\n' "$said" >&2; failed=1 ;;
    esac
  done
done
exit $failed
)sh";

}  // namespace

CommandLine delete_jobs(const std::string& dialect, const std::vector<std::string>& names) {
  return in_dialect(dialect, kDelete, names);
}

}  // namespace hpcbatch::pbs
