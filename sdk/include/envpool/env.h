/* env.h - the C ABI between reinforcement-learning environments and a host.
 *
 * A plugin is a shared library that exports one function, envpool_plugin_v1().
 * Rules that hold everywhere:
 *   - Every struct that may grow starts with `size`; the side that fills it
 *     sets sizeof; the side that reads it never reads past `size`. Structs
 *     marked "frozen" never grow and carry no size.
 *   - Nobody frees memory it did not allocate. Arguments are valid until the
 *     call returns; what must outlive it is copied. Descriptors (ep_plugin,
 *     ep_task, ep_option, extensions and all they point to) are immortal.
 *   - Strings are UTF-8, NUL-terminated. Booleans are uint8_t, 0 or 1.
 *   - No exception, panic, longjmp, exit() or abort() crosses this boundary.
 *   - A plugin leaves the process as it found it: working directory, locale, signal handlers,
 *     environment variables, floating-point modes. It prints nothing: ep_host.log is for that.
 *   - [any-thread]     may be called from any thread, concurrently.
 *   - [env-exclusive]  on a thread that ep_sharing allows, never two at once
 *                      per env; the host orders the calls (happens-before).
 *   - Callbacks on ep_host never call back into the plugin.
 *   - step() advances, observe() writes. An env never has to know whether its
 *     observation is wanted: the host asks for it (or for some fields of it)
 *     whenever it likes, after the end of an episode too.
 *   - A host refuses a plugin whose enum value, kind, layout or must-understand
 *     flag it does not know. Outputs that are newer than the plugin's minor are
 *     filled by the host beforehand.
 *   - Reserved members are zero.
 *
 * This header needs nothing else: copy it alone into an engine's tree if that
 * is handier than a dependency. Extensions stand in ext/, a C++ layer in env.hpp.
 */
#ifndef ENVPOOL_ENV_H
#define ENVPOOL_ENV_H

#include <stddef.h>
#include <stdint.h>

#define EP_ABI_MAJOR 1 /* incompatible layout: a new entry symbol, envpool_plugin_v2 */
#define EP_ABI_MINOR 0 /* members appended, constants added */

#if defined(_WIN32) || defined(__CYGWIN__)
#define EP_CALL __cdecl
#define EP_EXPORT __declspec(dllexport)
#else
#define EP_CALL
#define EP_EXPORT __attribute__((visibility("default")))
#endif

/* True if the sender of *p knew member m of struct T. */
#define EP_HAS(T, p, m) ((p)->size >= offsetof(T, m) + sizeof((p)->m))

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ep_host ep_host;

/* ---- status ------------------------------------------------------------- */

/* What a call returns. Zero is success, a negative value an error; other values are errors too.
 * A text for the user goes to ep_host.explain just before the error is returned. */
typedef int32_t ep_status;
enum {
  EP_OK = 0,
  EP_E_FAILED = -1,      /* this call failed; the env can be reset */
  EP_E_ARGUMENT = -2,    /* bad option value, action or argument; the env can be reset */
  EP_E_UNSUPPORTED = -3, /* not implemented by this env */
  EP_E_STATE = -4,       /* out of order, e.g. step after the episode ended */
  EP_E_NOMEM = -5,
  EP_E_NOT_FOUND = -6, /* an asset or file is missing */
  EP_E_CANCELLED = -7, /* the host asked to stop */
  EP_E_BROKEN = -8     /* the env is unusable; only destroy() may follow */
};

/* ---- spec --------------------------------------------------------------- */

/* Type of one element. Hundreds: kind (bool, unsigned, signed, float); rest: bits. */
typedef int32_t ep_dtype;
enum {
  EP_BOOL = 108, /* one byte, 0 or 1 */
  EP_UINT8 = 208,
  EP_UINT16 = 216,
  EP_UINT32 = 232,
  EP_UINT64 = 264,
  EP_INT8 = 308,
  EP_INT16 = 316,
  EP_INT32 = 332,
  EP_INT64 = 364,
  EP_FLOAT16 = 416,
  EP_FLOAT32 = 432,
  EP_FLOAT64 = 464
};

/* What a field is for. */
typedef int32_t ep_role;
enum {
  EP_OBS = 1,
  EP_ACTION = 2,
  EP_INFO = 3,  /* beside the observation, not given to the policy */
  EP_GLOBAL = 4 /* state of the whole game: observed once an env, never once an agent */
};

/* How an image field is laid out: lets the host gray, resize and stack it. Images are EP_UINT8, not
 * ragged, with 1, 3 or 4 channels. */
typedef int32_t ep_layout;
enum {
  EP_PLAIN = 0, /* not an image */
  EP_HW = 1,
  EP_HWC = 2,
  EP_CHW = 3,
  EP_INDEXED = 4 /* H x W of palette indices; palette and gray are set */
};

/* Which values a field may hold. */
typedef int32_t ep_kind;
enum {
  EP_BOX = 1, /* numbers within [low, high] */
  /* Integers start .. start+n-1 per element, of any integer dtype; rank > 0: multi-discrete. */
  EP_DISCRETE = 2,
  EP_MULTI_BINARY = 3, /* 0 or 1 per element; EP_BOOL, EP_UINT8 or EP_INT8 */
  EP_TEXT = 4          /* EP_UINT8[max], UTF-8, rank 1; always has a length in bytes */
};

enum {
  EP_FIELD_PER_AGENT = 1 << 0, /* a leading dimension max_agents is prepended */
  EP_FIELD_RAGGED = 1 << 1,    /* shape[0] is a maximum; a length tells (EP_TEXT has one too) */
  /* Timing etc.: not covered by determinism. Bits 16 up may be ignored. */
  EP_FIELD_VOLATILE = 1 << 16
};

typedef struct ep_field {
  uint32_t size;
  ep_role role;
  ep_kind kind;
  ep_dtype dtype;
  /* "a/b" nests dictionaries; the keys 0 .. k-1, all of them, make a tuple; "" is the whole space
   * and stands alone in its role. Unique within a role. */
  const char* name;
  const char* doc;      /* one line, may be NULL */
  const char* unit;     /* "m/s", may be NULL */
  const int64_t* shape; /* rank positive entries, without the agent dimension; NULL if rank is 0 */
  const void* low;      /* EP_BOX: bound_count values in dtype, inclusive; NULL: unbounded */
  const void* high;
  const int64_t* n;     /* EP_DISCRETE: bound_count counts of values */
  const int64_t* start; /* EP_DISCRETE: bound_count first values; NULL: 0 */
  uint32_t rank;        /* at most 8 */
  uint32_t bound_count; /* entries in low, high, n, start: 1 (all alike) or one per element; 0 if
                           none is set */
  uint32_t flags;       /* EP_FIELD_* */
  uint32_t group;       /* agent group, 0 unless envpool.agents/1 says otherwise */
  ep_layout layout;
  uint32_t reserved;
  const char* meaning; /* well-known use, may be NULL: "lives", "action_mask", "camera" */
  const char* const*
      labels; /* EP_DISCRETE: a name for each of n[0] values ("NOOP", "FIRE"), may be NULL */
  const uint8_t* palette; /* EP_INDEXED: 256 x RGB */
  const uint8_t* gray;    /* EP_INDEXED: 256 gray levels */
} ep_field;

/* ---- options ------------------------------------------------------------ */

typedef int32_t ep_type;
enum {
  EP_T_BOOL = 1,   /* i */
  EP_T_INT = 2,    /* i */
  EP_T_FLOAT = 3,  /* f */
  EP_T_STRING = 4, /* s */
  EP_T_PATH = 5,   /* s: a path of this machine, or "" */
  EP_T_ARRAY = 6,  /* data, count, dtype */
  EP_T_JSON = 7    /* s: checked to be JSON by the host */
};

/* A typed value; members that the type does not name are zero. Frozen. */
typedef struct ep_value {
  ep_type type;
  ep_dtype dtype; /* EP_T_ARRAY only */
  int64_t i;
  double f;
  const char* s; /* never NULL where the type uses it */
  const void* data;
  uint64_t count; /* elements in data */
} ep_value;

/* Bits 0-15 must be understood by the host, bits 16 up may be ignored. */
enum {
  EP_OPTION_REQUIRED = 1 << 0,   /* has no default: the user must give it */
  EP_OPTION_AT_RESET = 1 << 1,   /* may be given anew at each reset */
  EP_OPTION_SHAPES_SPEC = 1 << 2 /* the described spec depends on it */
};

typedef struct ep_option {
  uint32_t size;
  uint32_t flags;      /* EP_OPTION_* */
  const char* name;    /* an identifier: lower case, digits, "_" */
  const char* doc;     /* one line, may be NULL */
  const char* unit;    /* may be NULL */
  ep_value def;        /* its type is the option's type */
  const ep_value* min; /* inclusive; NULL: none. INT and FLOAT, and each element of an ARRAY (then
                          EP_T_FLOAT) */
  const ep_value* max;
  const ep_value* choices; /* choice_count values, or NULL. INT, FLOAT and STRING */
  uint32_t choice_count;
  uint32_t reserved;
} ep_option;

/* What describe() fills: at least one EP_OBS and one EP_ACTION field. The host sets every member to
 * the default named here first. */
typedef struct ep_spec {
  uint32_t size;
  uint32_t max_agents;       /* 1: single-agent */
  int64_t max_episode_steps; /* 0: none. Enforced by the host, as truncation */
  double reward_threshold;   /* return at which the task counts as solved. NaN: none */
  double fps;                /* rendered frames a second of play. 0: unknown */
  void* ctx;                 /* the host's */
  /* Appends a field, copying all of it before it returns. Not EP_OK: the field was refused and
   * explained; return that status. */
  ep_status(EP_CALL* add)(struct ep_spec* spec, const ep_field* field);
} ep_spec;

/* ---- host --------------------------------------------------------------- */

enum { EP_LOG_DEBUG = 10, EP_LOG_INFO = 20, EP_LOG_WARN = 30, EP_LOG_ERROR = 40 };

/* What the host offers to a plugin. One for the loading of plugins, one for each pool; each lives
 * as long as the process, so that envs may keep it. */
struct ep_host {
  uint32_t size;
  uint16_t abi_major, abi_minor;
  void* ctx;
  const char *name, *version;
  /* Host extension by id, or NULL. [any-thread] */
  const void*(EP_CALL* extension)(const ep_host* host, const char* id);
  /* Writes one line, EP_LOG_*, to the user's log. [any-thread] */
  void(EP_CALL* log)(const ep_host* host, int32_t level, const char* text);
  /* Explains the status about to be returned, on the thread that returns it. */
  void(EP_CALL* explain)(const ep_host* host, const char* text);
  /* Writes the absolute path of a packaged asset, whose name the package's manifest gives, into buf
   * of cap bytes. *len is its length without the NUL, even if cap was too small (EP_E_ARGUMENT).
   * Unknown: EP_E_NOT_FOUND. [any-thread] */
  ep_status(EP_CALL* asset)(const ep_host* host, const char* name, char* buf, uint64_t cap,
                            uint64_t* len);
  /* Nonzero once the host wants long work to return EP_E_CANCELLED. [any-thread] */
  int32_t(EP_CALL* cancelled)(const ep_host* host);
};

/* ---- running ------------------------------------------------------------ */

/* What step() acts on, in the order of ep_spec.add() among EP_ACTION fields. Read only, valid for
 * this call. */
typedef struct ep_input {
  uint32_t size;
  uint32_t agents;           /* rows of a PER_AGENT field: max_agents */
  const void* const* action; /* per field: its elements, aligned to their type */
  const uint32_t* const*
      action_length; /* per field: NULL unless it has lengths; one an agent if PER_AGENT */
} ep_input;

/* Where step() puts its outcome; every array has `agents` rows (1 if single). Valid for this call,
 * aligned to their type only. The host prefills reward 0, flags 0, alive 1. */
typedef struct ep_result {
  uint32_t size;
  uint32_t agents;
  double* reward;
  uint8_t* terminated; /* the task's own end: no future reward */
  uint8_t* truncated;  /* cut short for the env's own reasons; the host adds its time limit */
  uint8_t* alive;      /* NULL when agents == 1; 0: this agent takes no part at present */
  /* NULL when agents == 1, where either flag ends the episode; else one value for all. */
  uint8_t* episode_over;
} ep_result;

/* Where observe() writes, in the order of ep_spec.add() within a role. An entry that is NULL is not
 * wanted: skip computing it; the array itself is NULL when no field of that role is wanted. Buffers
 * hold garbage on entry: write every element of every wanted field (of a ragged one: as many as its
 * length says), 0 or 1 in a boolean. */
typedef struct ep_view {
  uint32_t size;
  uint32_t agents;
  void* const* obs;
  void* const* info;
  void* const* global;
  /* Entries are NULL unless the field has lengths; then one an agent if PER_AGENT. */
  uint32_t* const* obs_length;
  uint32_t* const* info_length;
  uint32_t* const* global_length;
} ep_view;

typedef struct ep_reset {
  uint32_t size;
  uint32_t has_seed; /* 0: go on with the generator's state; the first reset always has a seed */
  uint64_t seed;
  const ep_value* options; /* the EP_OPTION_AT_RESET ones, all, in declared order */
  uint32_t option_count;
  uint32_t reserved;
} ep_reset;

typedef struct ep_create {
  uint32_t size;
  uint32_t option_count;
  /* All declared options, validated, defaults filled in, in declared order. */
  const ep_value* options;
  uint64_t env_id; /* for logs; must not influence the dynamics */
} ep_create;

/* How much a process may share. Zero is the safe answer. */
typedef int32_t ep_sharing;
enum {
  EP_ONE_PER_PROCESS = 0, /* globals: the host runs one env per worker process */
  EP_THREAD_BOUND = 1,    /* many envs, each created, used and destroyed on one thread */
  EP_FREE = 2             /* many envs, any thread, in parallel */
};

/* Bits 0-31 must be understood by the host, bits 32-63 may be ignored. */
/* Needs the process's main thread: windowing, Godot, winit. */
#define EP_TASK_MAIN_THREAD (UINT64_C(1) << 0)
#define EP_TASK_OWN_THREADS (UINT64_C(1) << 32)      /* spawns workers: run fewer envs at once */
#define EP_TASK_NONDETERMINISTIC (UINT64_C(1) << 33) /* same seed and actions may differ */
#define EP_TASK_MAY_BLOCK (UINT64_C(1) << 34)        /* waits on I/O or another process */
#define EP_TASK_STICKY (UINT64_C(1) << 35)           /* runs best always on the same worker */

typedef struct ep_task {
  uint32_t size;
  ep_sharing sharing;
  uint64_t flags;  /* EP_TASK_* */
  const char* id;  /* "CartPole-v1": letters, digits, "_", "-", "."; ends in -v<number> */
  const char* doc; /* one line, may be NULL */
  const ep_option* const* options;
  uint32_t option_count;
  uint32_t reserved;
  /* Fills the spec for these options; the same options give the same spec. May read files and
   * compile a model; no window, GPU, process or thread. [any-thread] */
  ep_status(EP_CALL* describe)(const ep_host* host, const ep_create* info, ep_spec* spec);
  /* Makes one env. The host handed in is its pool's own. On error *env is ignored. [any-thread;
   * THREAD_BOUND: the env's own thread] */
  ep_status(EP_CALL* create)(const ep_host* host, const ep_create* info, void** env);
  /* Begins an episode. Comes before the first step and after an episode's end, and may come at any
   * time. [env-exclusive] */
  ep_status(EP_CALL* reset)(void* env, const ep_reset* how);
  /* Advances by one step. After an episode's end and before the next reset: EP_E_STATE.
   * [env-exclusive] */
  ep_status(EP_CALL* step)(void* env, const ep_input* in, const ep_result* out);
  /* Writes the present observation and info. Callable any number of times after reset, step, the
   * end of an episode or a loaded state; changes nothing. [env-exclusive] */
  ep_status(EP_CALL* observe)(void* env, const ep_view* out);
  void(EP_CALL* destroy)(void* env); /* [env-exclusive] */
  /* Extension of this task by id ("envpool.render/1"), or NULL. May itself be NULL: none.
   * [any-thread] */
  const void*(EP_CALL* extension)(const char* id);
} ep_task;

typedef struct ep_plugin {
  uint32_t size;
  uint16_t abi_major, abi_minor; /* EP_ABI_* at build time */
  uint16_t host_minor;           /* least host ABI minor it can live with */
  uint16_t reserved;
  uint32_t task_count;
  const ep_task* const* tasks;
  const char *name, *version; /* not empty */
  const char *license, *url;  /* may be NULL */
} ep_plugin;

/* The one exported function, called once per process; libraries are never unloaded. Must be cheap
 * and have no side effects: no threads, no files, no signals. NULL: refuse to load (explained). */
typedef const ep_plugin*(EP_CALL* ep_plugin_fn)(const ep_host* host);
EP_EXPORT const ep_plugin* EP_CALL envpool_plugin_v1(const ep_host* host);

/* ---- optional helpers (pure C, nothing to link) -------------------------- */

/* splitmix64 (Steele, Lea, Flood 2014): bit-exact in every language; one word of state, trivially
 * saved. */
static inline uint64_t ep_rand(uint64_t* state) {
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* Uniform in [low, high): the upper 53 bits, scaled. */
static inline double ep_uniform(uint64_t* state, double low, double high) {
  return low + (high - low) * ((double)(ep_rand(state) >> 11) * (1.0 / 9007199254740992.0));
}

/* Explains and returns a status: `return ep_fail(host, EP_E_NOMEM, "no memory for the board");` */
static inline ep_status ep_fail(const ep_host* host, ep_status code, const char* text) {
  host->explain(host, text);
  return code;
}

#ifdef __cplusplus
}
#endif
#endif /* ENVPOOL_ENV_H */
