// Both headers as C++17, without a warning; a second translation unit of test_hpp, so that nothing is defined
// twice.
#include <cvc.h>

#include <cvc.hpp>

static_assert(sizeof(cvc_image_record_t) == 152, "an image in a batch");
static_assert(sizeof(cvc::Tensor) == sizeof(void *), "a reference is its handle");
static_assert(std::is_nothrow_move_constructible_v<cvc::Tensor> && std::is_copy_constructible_v<cvc::Tensor>);
static_assert(std::is_nothrow_move_assignable_v<cvc::Stream> && !std::is_copy_constructible_v<cvc::Stream>);
static_assert(std::is_nothrow_move_assignable_v<cvc::Event> && !std::is_copy_constructible_v<cvc::Event>);
static_assert(std::is_nothrow_destructible_v<cvc::Access<cvc::Image>>);
static_assert(cvc::size_of(cvc::vector(cvc::Dtype::f16, 3)) == 6);
static_assert(static_cast<cvc_dtype_t>(cvc::vector(cvc::Dtype::u8, 2)) == CVC_DTYPE_2U8);

const char *version_of_another_unit() { return cvc_version(); }
