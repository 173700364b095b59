// The header as C11 without a warning, and the sizes of what lies in device memory.
#include <cvc.h>

_Static_assert(sizeof(cvc_image_plane_t) == 24, "a plane");
_Static_assert(sizeof(cvc_image_record_t) == 152, "an image in a batch");
_Static_assert(sizeof(cvc_tensor_record_t) == 256, "a tensor in a batch");
_Static_assert(sizeof(cvc_stream_t) == sizeof(void *) && sizeof(cvc_tensor_t) == sizeof(void *), "handles");
_Static_assert(sizeof(cvc_status_t) == 4 && sizeof(cvc_dtype_t) == 4 && sizeof(cvc_format_t) == 4,
               "enumerations");

int main(void) { return CVC_STATUS_OK; }
