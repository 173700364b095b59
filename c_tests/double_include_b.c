// The other of two C units that include the header.
#include <cvc.h>

const char *version_of_b(void);

const char *version_of_b(void) { return cvc_version(); }
