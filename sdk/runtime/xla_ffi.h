/* xla_ffi.h - what we use of the C interface by which XLA calls foreign functions.
 *
 * A subset, alike in versions 0.1 to 0.3, of the xla/ffi/api/c_api.h that jaxlib brings along: so
 * building needs no JAX (and gcc takes that header for no C++). Members have XLA's names.
 * tests/python/test_xla.py compares the layout with the header of the jaxlib that is installed. */
#ifndef ENVPOOL_RUNTIME_XLA_FFI_H_
#define ENVPOOL_RUNTIME_XLA_FFI_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { XLA_MAJOR = 0, XLA_MINOR = 3 };

/* xla::PrimitiveType, as far as fields have such a dtype. */
enum {
  XLA_PRED = 1,
  XLA_S8 = 2,
  XLA_S16 = 3,
  XLA_S32 = 4,
  XLA_S64 = 5,
  XLA_U8 = 6,
  XLA_U16 = 7,
  XLA_U32 = 8,
  XLA_U64 = 9,
  XLA_F16 = 10,
  XLA_F32 = 11,
  XLA_F64 = 12
};

/* absl::StatusCode, likewise. */
enum {
  XLA_INVALID_ARGUMENT = 3,
  XLA_DEADLINE_EXCEEDED = 4,
  XLA_RESOURCE_EXHAUSTED = 8,
  XLA_FAILED_PRECONDITION = 9,
  XLA_INTERNAL = 13
};

enum { XLA_EXTENSION_METADATA = 1 };

typedef struct xla_error xla_error; /* XLA's own */

typedef struct xla_extension {
  size_t struct_size;
  int32_t type;
  struct xla_extension* next;
} xla_extension;

typedef struct xla_api_version {
  size_t struct_size;
  xla_extension* extension_start;
  int32_t major_version;
  int32_t minor_version;
} xla_api_version;

/* Answers which version of the interface a handler speaks; there is more behind. */
typedef struct xla_metadata {
  size_t struct_size;
  xla_api_version api_version;
} xla_metadata;

typedef struct xla_metadata_extension {
  xla_extension extension_base;
  xla_metadata* metadata;
} xla_metadata_extension;

typedef struct xla_error_create_args {
  size_t struct_size;
  xla_extension* extension_start;
  const char* message; /* copied */
  int32_t errc;
} xla_error_create_args;

/* There is more behind. */
typedef struct xla_api {
  size_t struct_size;
  xla_extension* extension_start;
  xla_api_version api_version;
  const void* internal_api;
  xla_error* (*error_create)(xla_error_create_args* args);
} xla_api;

typedef struct xla_buffer {
  size_t struct_size;
  xla_extension* extension_start;
  int32_t dtype;
  void* data; /* row-major */
  int64_t rank;
  int64_t* dims;
} xla_buffer;

/* Arguments or results: all are buffers. */
typedef struct xla_buffers {
  size_t struct_size;
  xla_extension* extension_start;
  int64_t size;
  int32_t* types;
  void** buffers;
} xla_buffers;

/* There is more behind. */
typedef struct xla_call_frame {
  size_t struct_size;
  xla_extension* extension_start;
  const xla_api* api;
  void* ctx;
  int32_t stage;
  xla_buffers args;
  xla_buffers rets;
} xla_call_frame;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ENVPOOL_RUNTIME_XLA_FFI_H_ */
