/* guest.h - for engines that own their main loop (Godot, Unity, Unreal, a browser): they are not
 * called, they ask what to do.
 *
 * A package of such an engine has two parts. Its plugin (env.h) only describes the tasks: options
 * and spec; create() and the others return EP_E_UNSUPPORTED and are never called. Its program,
 * which the package's manifest names, runs one env; the host starts it as a worker process, one for
 * each env.
 *
 *   ep_guest guest;
 *   if (ep_guest_open(&guest) != EP_OK) return 1;     // not started by a host
 *   for (;;) {
 *     ep_guest_call call = {sizeof call};
 *     ep_status status = EP_OK;
 *     switch (ep_guest_next(&guest, &call, -1)) {     // or 0 within a frame of the engine's loop
 *       case EP_GUEST_RESET: status = my_reset(call.reset); break;
 *       case EP_GUEST_STEP: status = my_step(call.input, call.result); break;
 *       case EP_GUEST_OBSERVE: status = my_observe(call.view); break;
 *       case EP_GUEST_END: return 0;
 *     }
 *     ep_guest_done(&guest, status, NULL);
 *   }
 *
 * The calls and what they point to obey the contract in env.h: the same structs, valid until done.
 * An env has no extensions here. All functions: on one thread. Needs dlopen (-ldl on old systems);
 * nothing is linked: the library comes from the host that started the program, so that both are of
 * one version. */
#ifndef ENVPOOL_GUEST_H
#define ENVPOOL_GUEST_H

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <envpool/env.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What ep_guest_next() gives: a call to be answered by ep_guest_done(), but for the first and last.
 */
enum {
  EP_GUEST_NOTHING = 0, /* there was none within the timeout */
  EP_GUEST_CREATE = 1,  /* create: once, first */
  EP_GUEST_RESET = 2,   /* reset */
  EP_GUEST_STEP = 3,    /* input, result */
  EP_GUEST_OBSERVE = 4, /* view */
  EP_GUEST_DESTROY = 5, /* no more calls but EP_GUEST_END will come, or a EP_GUEST_CREATE */
  EP_GUEST_END = 6      /* the host is done with us: leave the loop and exit */
};

/* Members that the call does not name are NULL. */
typedef struct ep_guest_call {
  uint32_t size;
  int32_t what;        /* EP_GUEST_* */
  const ep_host* host; /* its log, asset and cancelled are for the env's use */
  const ep_create* create;
  const ep_reset* reset;
  const ep_input* input;
  const ep_result* result;
  const ep_view* view;
} ep_guest_call;

/* What the host's library offers; use the functions below. */
typedef struct ep_guest_api {
  uint32_t size;
  uint32_t reserved;
  int32_t(EP_CALL* next)(ep_guest_call* call, int64_t timeout_ms);
  ep_status(EP_CALL* done)(ep_status status, const char* text);
} ep_guest_api;

typedef const ep_guest_api*(EP_CALL* ep_guest_open_fn)(uint32_t abi_major, uint32_t abi_minor);

typedef struct ep_guest {
  const ep_guest_api* api;
} ep_guest;

/* Once, at the start. EP_E_NOT_FOUND: no host started this program, so that it may run on its own;
 * EP_E_UNSUPPORTED: the host's version can't serve this header's. */
static inline ep_status ep_guest_open(ep_guest* guest) {
  const char* path = getenv("ENVPOOL_GUEST_LIBRARY");
  void* library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  void* symbol = library ? dlsym(library, "envpool_guest_open_v1") : NULL;
  ep_guest_open_fn open_guest;
  guest->api = NULL;
  if (!symbol) return EP_E_NOT_FOUND;
  memcpy(&open_guest, &symbol, sizeof open_guest); /* ISO C has no cast from void* to a function */
  guest->api = open_guest(EP_ABI_MAJOR, EP_ABI_MINOR);
  return guest->api ? EP_OK : EP_E_UNSUPPORTED;
}

/* Waits up to timeout_ms milliseconds (0: looks only; below 0: for ever) for the next call, fills
 * *call and returns its `what`. A call that was not answered yet comes again. */
static inline int32_t ep_guest_next(ep_guest* guest, ep_guest_call* call, int64_t timeout_ms) {
  return guest->api->next(call, timeout_ms);
}

/* Answers the call. text: why, for a status other than EP_OK; may be NULL. EP_E_STATE: there was no
 * call to answer. */
static inline ep_status ep_guest_done(ep_guest* guest, ep_status status, const char* text) {
  return guest->api->done(status, text);
}

#ifdef __cplusplus
}
#endif
#endif /* ENVPOOL_GUEST_H */
