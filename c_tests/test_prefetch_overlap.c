// The example of that name again, with accounts that add up at its end and, where the race checker is on, no
// race.
#include "check.h"

int prefetch_overlap(void); // its main

static void runs_without_a_race(void) { CHECK_EQ(prefetch_overlap(), 0); }

int main(void) {
  CHECK_BEGIN();
  RUN(runs_without_a_race);
  return CHECK_END();
}
