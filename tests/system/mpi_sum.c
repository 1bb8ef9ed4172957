// Prints the sum of rank + 1 over all ranks, how many these are, and which pilot each ran at: by its environment, because
// the nodes of a test have one name. Works for so many seconds in between; with $LEDGER
// each rank has a line there.
#include "ledger.h"

#include <mpi.h>
#include <stddef.h>

enum { PILOT = 64 };

int main(int argc, char** argv) {
  struct ledger ledger;
  char pilot[PILOT];
  int rank = 0, ranks = 0;
  long sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  snprintf(pilot, PILOT, "%s", ledger_word("HPCBATCH_PILOT"));
  if (getenv("LEDGER")) ledger_begin(&ledger, "rank", pilot, rank);
  const long own = rank + 1;
  char* pilots = calloc((size_t)ranks, PILOT);
  MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  MPI_Gather(pilot, PILOT, MPI_CHAR, pilots, PILOT, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (argc > 1 && getenv("LEDGER")) ledger_work(&ledger, atof(argv[1]));
  if (getenv("LEDGER")) ledger_say(&ledger, 'd');
  if (rank == 0) {
    printf("%ld %d", sum, ranks);
    for (int other = 0; other < ranks; ++other) printf(" %s", pilots + (ptrdiff_t)PILOT * other);
    printf("\n");
  }
  free(pilots);
  MPI_Finalize();
  return 0;
}
