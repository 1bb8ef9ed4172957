// What qsub, qstat and pbsnodes print, with what other users have put into it.
#include "fuzz/scheduler_answers.hpp"

HPCBATCH_HARNESS(pbs, bytes) {
  static const auto scheduler = contract::load<Scheduler>(PLUGINS "/schedulers/pbs.so");
  read_answer(*scheduler, bytes);
}
