// What sbatch, squeue, sacct and sinfo print, with what other users have put into it.
#include "fuzz/scheduler_answers.hpp"

HPCBATCH_HARNESS(slurm, bytes) {
  static const auto scheduler = contract::load<Scheduler>(PLUGINS "/schedulers/slurm.so");
  read_answer(*scheduler, bytes);
}
