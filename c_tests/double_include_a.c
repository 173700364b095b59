// One of two C units that include the header, twice each: it defines nothing.
#include <cvc.h>

const char *version_of_b(void);

int main(void) { return version_of_b() == cvc_version() ? 0 : 1; }
