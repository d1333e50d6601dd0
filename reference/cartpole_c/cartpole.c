/* cartpole.c - CartPole-v1 in plain C: the reference for what a plugin looks like without a layer.
 *
 * From equal states the dynamics give the same bits as gymnasium/envs/classic_control/cartpole.py:
 * the same operations on doubles in the same order (so no fused multiply-add: build with
 * -ffp-contract=off), libm's sin and cos. The start of an episode comes from splitmix64, not from
 * NumPy's generator.
 *
 * State (envpool.state/1, both purposes), 48 bytes, little-endian: uint32 version = 1, uint32 1
 * while an episode runs, float64 x, x_dot, theta, theta_dot, uint64 word of the generator. The C++
 * CartPole writes and takes the same bytes. */
#include <envpool/env.h>
#include <envpool/ext/batch.h>
#include <envpool/ext/render.h>
#include <envpool/ext/state.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../common/cartpole_draw.h"

#define TAU 0.02
#define MASS_POLE 0.1
#define MASS (MASS_POLE + 1.0)
#define X_LIMIT 2.4
#define THETA_LIMIT (12 * 2 * 3.14159265358979323846 / 360)

typedef struct Env {
  double x, x_dot, theta, theta_dot;
  double gravity, force, length;
  uint8_t running, sutton_barto, semi_implicit; /* up to here, 64 bytes: what a step touches */
  uint64_t rng;
  const ep_host* host;
} Env;

/* ---- spec --------------------------------------------------------------- */

enum { GRAVITY, FORCE_MAG, LENGTH, SUTTON_BARTO, INTEGRATOR, LOW, HIGH, OPTION_COUNT };

static const ep_value ZERO = {.type = EP_T_FLOAT, .f = 0}, TINY = {.type = EP_T_FLOAT, .f = 0.01};
static const ep_value INTEGRATORS[] = {{.type = EP_T_STRING, .s = "euler"},
                                       {.type = EP_T_STRING, .s = "semi-implicit"}};
static const ep_option OPTION[OPTION_COUNT] = {
    [GRAVITY] = {.size = sizeof(ep_option),
                 .name = "gravity",
                 .unit = "m/s^2",
                 .def = {.type = EP_T_FLOAT, .f = 9.8}},
    [FORCE_MAG] = {.size = sizeof(ep_option),
                   .name = "force_mag",
                   .unit = "N",
                   .doc = "force of a push",
                   .def = {.type = EP_T_FLOAT, .f = 10},
                   .min = &ZERO},
    [LENGTH] = {.size = sizeof(ep_option),
                .name = "length",
                .unit = "m",
                .doc = "half the pole's length",
                .def = {.type = EP_T_FLOAT, .f = 0.5},
                .min = &TINY},
    [SUTTON_BARTO] = {.size = sizeof(ep_option),
                      .name = "sutton_barto_reward",
                      .doc = "0 a step and -1 at the fall, rather than 1 a step",
                      .def = {.type = EP_T_BOOL}},
    [INTEGRATOR] = {.size = sizeof(ep_option),
                    .name = "kinematics_integrator",
                    .def = {.type = EP_T_STRING, .s = "euler"},
                    .choices = INTEGRATORS,
                    .choice_count = 2},
    [LOW] = {.size = sizeof(ep_option),
             .flags = EP_OPTION_AT_RESET,
             .name = "low",
             .doc = "least value of a start",
             .def = {.type = EP_T_FLOAT, .f = -0.05}},
    [HIGH] = {.size = sizeof(ep_option),
              .flags = EP_OPTION_AT_RESET,
              .name = "high",
              .doc = "greatest value of a start",
              .def = {.type = EP_T_FLOAT, .f = 0.05}},
};
static const ep_option* const OPTIONS[OPTION_COUNT] = {
    &OPTION[0], &OPTION[1], &OPTION[2], &OPTION[3], &OPTION[4], &OPTION[5], &OPTION[6]};

static const int64_t FOUR[] = {4}, TWO[] = {2};
static const float OBS_LOW[] = {(float)(-2 * X_LIMIT), -HUGE_VALF, (float)(-2 * THETA_LIMIT),
                                -HUGE_VALF};
static const float OBS_HIGH[] = {(float)(2 * X_LIMIT), HUGE_VALF, (float)(2 * THETA_LIMIT),
                                 HUGE_VALF};
static const char* const LABELS[] = {"LEFT", "RIGHT"};
static const ep_field FIELDS[] = {
    {.size = sizeof(ep_field),
     .role = EP_OBS,
     .kind = EP_BOX,
     .dtype = EP_FLOAT32,
     .name = "",
     .doc = "x, x_dot, theta, theta_dot",
     .shape = FOUR,
     .rank = 1,
     .low = OBS_LOW,
     .high = OBS_HIGH,
     .bound_count = 4},
    {.size = sizeof(ep_field),
     .role = EP_ACTION,
     .kind = EP_DISCRETE,
     .dtype = EP_INT64,
     .name = "",
     .n = TWO,
     .bound_count = 1,
     .labels = LABELS},
};

static ep_status EP_CALL describe(const ep_host* host, const ep_create* info, ep_spec* spec) {
  (void)host;
  spec->max_episode_steps = 500;
  spec->reward_threshold = info->options[SUTTON_BARTO].i ? 0 : 475;
  spec->fps = 1 / TAU;
  for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++) {
    const ep_status s = spec->add(spec, &FIELDS[i]);
    if (s != EP_OK) return s;
  }
  return EP_OK;
}

/* ---- running ------------------------------------------------------------ */

static ep_status EP_CALL create(const ep_host* host, const ep_create* info, void** env) {
  Env* e = calloc(1, sizeof *e);
  if (!e) return ep_fail(host, EP_E_NOMEM, "cartpole: no memory");
  e->host = host;
  e->gravity = info->options[GRAVITY].f;
  e->force = info->options[FORCE_MAG].f;
  e->length = info->options[LENGTH].f;
  e->sutton_barto = info->options[SUTTON_BARTO].i != 0;
  e->semi_implicit = strcmp(info->options[INTEGRATOR].s, "semi-implicit") == 0;
  *env = e;
  return EP_OK;
}

static ep_status EP_CALL reset(void* env, const ep_reset* how) {
  Env* e = env;
  const double low = how->options[0].f, high = how->options[1].f;
  e->running = 0;
  if (!(low <= high)) return ep_fail(e->host, EP_E_ARGUMENT, "cartpole: low is above high");
  if (how->has_seed) e->rng = how->seed;
  e->x = ep_uniform(&e->rng, low, high);
  e->x_dot = ep_uniform(&e->rng, low, high);
  e->theta = ep_uniform(&e->rng, low, high);
  e->theta_dot = ep_uniform(&e->rng, low, high);
  e->running = 1;
  return EP_OK;
}

/* One step; true if the pole fell or the cart left. */
static inline uint8_t advance(Env* e, int64_t push) {
  const double polemass_length = MASS_POLE * e->length, force = push == 1 ? e->force : -e->force;
  const double c = cos(e->theta), s = sin(e->theta);
  const double temp = (force + polemass_length * (e->theta_dot * e->theta_dot) * s) / MASS;
  const double theta_acc =
      (e->gravity * s - c * temp) / (e->length * (4.0 / 3.0 - MASS_POLE * (c * c) / MASS));
  const double x_acc = temp - polemass_length * theta_acc * c / MASS;
  if (!e->semi_implicit) {
    e->x += TAU * e->x_dot;
    e->x_dot += TAU * x_acc;
    e->theta += TAU * e->theta_dot;
    e->theta_dot += TAU * theta_acc;
  } else {
    e->x_dot += TAU * x_acc;
    e->x += TAU * e->x_dot;
    e->theta_dot += TAU * theta_acc;
    e->theta += TAU * e->theta_dot;
  }
  return e->x < -X_LIMIT || e->x > X_LIMIT || e->theta < -THETA_LIMIT || e->theta > THETA_LIMIT;
}

static inline double reward(const Env* e, uint8_t fell) {
  return e->sutton_barto ? (fell ? -1.0 : 0.0) : 1.0;
}

static inline void look(const Env* e, float* o) {
  o[0] = (float)e->x;
  o[1] = (float)e->x_dot;
  o[2] = (float)e->theta;
  o[3] = (float)e->theta_dot;
}

static ep_status out_of_order(const Env* e) {
  return ep_fail(e->host, EP_E_STATE, "cartpole: step() without a running episode");
}

static ep_status EP_CALL step(void* env, const ep_input* in, const ep_result* out) {
  Env* e = env;
  if (!e->running) return out_of_order(e);
  const uint8_t fell = advance(e, *(const int64_t*)in->action[0]);
  e->running = !fell;
  *out->reward = reward(e, fell);
  *out->terminated = fell;
  *out->truncated = 0;
  return EP_OK;
}

static ep_status EP_CALL observe(void* env, const ep_view* out) {
  if (out->obs && out->obs[0]) look(env, out->obs[0]);
  return EP_OK;
}

/* ---- extensions --------------------------------------------------------- */

/* Writes what a step of env gave to row r. */
static inline void finish(const ep_rows* rows, uint32_t r, Env* e, uint8_t fell) {
  e->running = !fell;
  if (rows->obs && rows->obs[0].data)
    look(e, (float*)((char*)rows->obs[0].data + r * rows->obs[0].row_bytes));
  rows->reward[r] = reward(e, fell);
  rows->terminated[r] = fell;
  rows->truncated[r] = 0;
  rows->status[r] = EP_OK;
}

static inline int64_t push_of(const ep_rows* rows, uint32_t r) {
  return *(const int64_t*)((const char*)rows->action[0].data + r * rows->action[0].row_bytes);
}

/* A block at a time: the states are gathered into arrays, so that the sines overlap and the rest
 * runs in vectors. The operations on each env are those of advance(), in the same order. */
enum { BLOCK = 32 };

static void step_block(const ep_rows* rows, Env* const* env, const uint32_t* in,
                       const uint32_t* out, uint32_t n) {
  double x[BLOCK], x_dot[BLOCK], theta[BLOCK], theta_dot[BLOCK], force[BLOCK], s[BLOCK], c[BLOCK];
  double gravity[BLOCK], length[BLOCK];
  for (uint32_t i = 0; i < n; i++) {
    const Env* e = env[i];
    x[i] = e->x;
    x_dot[i] = e->x_dot;
    theta[i] = e->theta;
    theta_dot[i] = e->theta_dot;
    force[i] = e->force * (2 * (push_of(rows, in[i]) == 1) - 1);
    gravity[i] = e->gravity;
    length[i] = e->length;
  }
  for (uint32_t i = 0; i < n; i++) {
    s[i] = sin(theta[i]);
    c[i] = cos(theta[i]);
  }
  for (uint32_t i = 0; i < n; i++) {
    const double polemass_length = MASS_POLE * length[i];
    const double temp = (force[i] + polemass_length * (theta_dot[i] * theta_dot[i]) * s[i]) / MASS;
    const double theta_acc = (gravity[i] * s[i] - c[i] * temp) /
                             (length[i] * (4.0 / 3.0 - MASS_POLE * (c[i] * c[i]) / MASS));
    const double x_acc = temp - polemass_length * theta_acc * c[i] / MASS;
    x[i] += TAU * x_dot[i];
    x_dot[i] += TAU * x_acc;
    theta[i] += TAU * theta_dot[i];
    theta_dot[i] += TAU * theta_acc;
  }
  for (uint32_t i = 0; i < n; i++) {
    Env* e = env[i];
    const uint8_t fell = (fabs(x[i]) > X_LIMIT) | (fabs(theta[i]) > THETA_LIMIT);
    e->x = x[i];
    e->x_dot = x_dot[i];
    e->theta = theta[i];
    e->theta_dot = theta_dot[i];
    finish(rows, out[i], e, fell);
  }
}

static ep_status EP_CALL step_many(const ep_rows* rows) {
  ep_status all = EP_OK;
  Env* env[BLOCK];
  uint32_t in[BLOCK], out[BLOCK], n = 0;
  for (uint32_t i = 0; i < rows->count; i++) {
    Env* e = rows->env[i];
    if (!e->running) {
      all = rows->status[rows->out[i]] = out_of_order(e);
      continue;
    }
    if (e->semi_implicit) {
      const uint8_t fell = advance(e, push_of(rows, rows->in[i]));
      finish(rows, rows->out[i], e, fell);
      continue;
    }
    env[n] = e;
    in[n] = rows->in[i];
    out[n++] = rows->out[i];
    if (n == BLOCK) {
      step_block(rows, env, in, out, n);
      n = 0;
    }
  }
  if (n) step_block(rows, env, in, out, n);
  return all;
}

static ep_status EP_CALL measure(void* env, ep_image* image) {
  if (image->width == 0) image->width = CARTPOLE_WIDTH;
  if (image->height == 0) image->height = CARTPOLE_HEIGHT;
  if (image->format != EP_RGB8 || image->camera != 0 || image->width != CARTPOLE_WIDTH ||
      image->height != CARTPOLE_HEIGHT)
    return ep_fail(((Env*)env)->host, EP_E_ARGUMENT, "cartpole: one camera draws RGB at 600 x 400");
  return EP_OK;
}

static ep_status EP_CALL draw(void* env, const ep_image* image) {
  const Env* e = env;
  cartpole_draw(e->x, e->theta, e->length, image->pixels, image->row_bytes);
  return EP_OK;
}

typedef struct State {
  uint32_t version, running;
  double x, x_dot, theta, theta_dot;
  uint64_t rng;
} State;

static ep_status EP_CALL save(void* env, int32_t purpose, const ep_writer* writer) {
  const Env* e = env;
  const State s = {1, e->running, e->x, e->x_dot, e->theta, e->theta_dot, e->rng};
  (void)purpose;
  return writer->write(writer, &s, sizeof s);
}

static ep_status EP_CALL load(void* env, int32_t purpose, const void* data, uint64_t bytes) {
  Env* e = env;
  State s = {0};
  (void)purpose;
  if (bytes == sizeof s) memcpy(&s, data, sizeof s);
  if (s.version != 1 || s.running > 1)
    return ep_fail(e->host, EP_E_ARGUMENT, "cartpole: not a state of CartPole-v1");
  e->running = (uint8_t)s.running;
  e->x = s.x;
  e->x_dot = s.x_dot;
  e->theta = s.theta;
  e->theta_dot = s.theta_dot;
  e->rng = s.rng;
  return EP_OK;
}

static const ep_batch BATCH = {.size = sizeof(ep_batch), .step_many = step_many};
static const ep_render RENDER = {
    .size = sizeof(ep_render), .formats = 1u << EP_RGB8, .measure = measure, .draw = draw};
static const ep_state STATE = {.size = sizeof(ep_state),
                               .purposes = 1u << EP_STATE_CLONE | 1u << EP_STATE_PERSIST,
                               .save = save,
                               .load = load};

static const void* EP_CALL extension(const char* id) {
  if (strcmp(id, EP_EXT_BATCH) == 0) return &BATCH;
  if (strcmp(id, EP_EXT_RENDER) == 0) return &RENDER;
  if (strcmp(id, EP_EXT_STATE) == 0) return &STATE;
  return NULL;
}

/* ---- plugin ------------------------------------------------------------- */

static void EP_CALL destroy(void* env) { free(env); }

static const ep_task TASK = {.size = sizeof(ep_task),
                             .sharing = EP_FREE,
                             .id = "CartPole-v1",
                             .doc = "Balance a pole on a cart.",
                             .options = OPTIONS,
                             .option_count = OPTION_COUNT,
                             .describe = describe,
                             .create = create,
                             .reset = reset,
                             .step = step,
                             .observe = observe,
                             .destroy = destroy,
                             .extension = extension};
static const ep_task* const TASKS[] = {&TASK};
static const ep_plugin PLUGIN = {.size = sizeof(ep_plugin),
                                 .abi_major = EP_ABI_MAJOR,
                                 .abi_minor = EP_ABI_MINOR,
                                 .task_count = 1,
                                 .tasks = TASKS,
                                 .name = "cartpole-c",
                                 .version = "1.0.0"};

const ep_plugin* EP_CALL envpool_plugin_v1(const ep_host* host) {
  (void)host;
  return &PLUGIN;
}
