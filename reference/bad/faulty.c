/* faulty.c - a plugin that keeps every promise but one.
 *
 * Which one it breaks is told by the name of its file: faulty_<flaw>.so, all copies of one library;
 * faulty.txt lists the flaws with the check that finds each. As "none" it is sound, and so is
 * "batch_none", which has fewer fields and offers envpool.batch/1, as do all flaws named batch_*.
 * The three that a compiler has to know of (see the end) are compiled for themselves.
 *
 * The game: `cells` numbers that wander at random and by the action; an episode takes 8 to 15
 * steps. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <envpool/env.h>
#include <envpool/ext/agents.h>
#include <envpool/ext/batch.h>
#include <envpool/ext/render.h>
#include <envpool/ext/state.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char flaw[64] = "none"; /* which promise is broken */
#define IS(name) (strcmp(flaw, name) == 0)

enum { MOST_CELLS = 8, PICTURE = 16 };

typedef struct Game {
  uint64_t rng, seed;
  int64_t t, end;
  double x[MOST_CELLS];
  int32_t cells, turn; /* turn: 0 .. 2, the last push */
  uint8_t running, begun;
} Game;

typedef struct Env {
  Game g;
  const ep_host* host;
  double speed, start;
  uint64_t id;
  int64_t looks, draws;
  uint8_t* block; /* from the first reset on */
  pthread_t thread;
  const ep_value* kept_options;
  const int64_t* kept_action;
  float* kept_view;
} Env;

static int described, alive;
static Game shared; /* what should be the env's own, for flaws */
static volatile double scratch;
static volatile int sink;
static void* volatile lost;

static void* sleeper(void* nothing) {
  for (;;) pause();
  return nothing;
}
static void start_thread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, sleeper, NULL);
}
static void start_process(void) {
  if (fork() == 0)
    for (;;) pause();
}
static void change_locale(void) {
  const char* now = setlocale(LC_CTYPE, NULL);
  setlocale(LC_CTYPE, strcmp(now, "C") == 0 ? "C.UTF-8" : "C");
}
static void leak(size_t bytes) { lost = memset(malloc(bytes), 1, bytes); }
static void crash(void) { raise(SIGSEGV); }

/* ---- spec --------------------------------------------------------------- */

enum { SPEED, MODE, FILE_, CELLS, START, OPTION_COUNT };
enum { STATE, PICK, BITS, FLAG, WORDS, EVENTS, OBS_COUNT };

static ep_value one, two, least_cells, most_cells, least_start, most_start, modes[2];
static ep_option option[OPTION_COUNT];
static const ep_option* options[OPTION_COUNT];

static void build_options(void) {
  one = (ep_value){.type = EP_T_FLOAT, .f = 1};
  two = (ep_value){.type = EP_T_FLOAT, .f = 2};
  least_cells = (ep_value){.type = EP_T_INT, .i = 1};
  most_cells = (ep_value){.type = EP_T_INT, .i = MOST_CELLS};
  least_start = (ep_value){.type = EP_T_FLOAT, .f = -0.5};
  most_start = (ep_value){.type = EP_T_FLOAT, .f = 0.5};
  modes[0] = (ep_value){.type = EP_T_STRING, .s = "a"};
  modes[1] = (ep_value){.type = EP_T_STRING, .s = "b"};
  option[SPEED] =
      (ep_option){.name = "speed", .def = {.type = EP_T_FLOAT, .f = 1.5}, .min = &one, .max = &two};
  option[MODE] = (ep_option){
      .name = "mode", .def = {.type = EP_T_STRING, .s = "a"}, .choices = modes, .choice_count = 2};
  option[FILE_] = (ep_option){.name = "file", .def = {.type = EP_T_PATH, .s = ""}};
  option[CELLS] = (ep_option){.name = "cells",
                              .flags = EP_OPTION_SHAPES_SPEC,
                              .def = {.type = EP_T_INT, .i = 2},
                              .min = &least_cells,
                              .max = &most_cells};
  option[START] = (ep_option){.name = "start",
                              .flags = EP_OPTION_AT_RESET,
                              .def = {.type = EP_T_FLOAT},
                              .min = &least_start,
                              .max = &most_start};
  for (int i = 0; i < OPTION_COUNT; i++) {
    option[i].size = sizeof(ep_option);
    options[i] = &option[i];
  }
  if (IS("reserved")) option[MODE].reserved = 7;
}

static int batched(void) { return strncmp(flaw, "batch_", 6) == 0; }

static ep_status EP_CALL describe(const ep_host* host, const ep_create* info, ep_spec* spec) {
  static int calls;
  const int64_t cells = info->options[CELLS].i, bits = 3, text = 8, rows = 4, n = 5, pushes = 3,
                first = 1, board = 3;
  const int wide =
      (IS("spec_unflagged") && strcmp(info->options[MODE].s, "b") == 0) || IS("spec_changes");
  const float low = -1, high = wide ? 1 + (float)(IS("spec_changes") ? calls++ : 1) : 1, zero = 0,
              hundred = 100;
  const ep_field field[] = {
      {.role = EP_OBS,
       .kind = EP_BOX,
       .dtype = EP_FLOAT32,
       .name = "state",
       .shape = &cells,
       .rank = 1,
       .low = &low,
       .high = &high,
       .bound_count = 1},
      {.role = EP_OBS,
       .kind = EP_DISCRETE,
       .dtype = EP_INT64,
       .name = "pick",
       .n = &n,
       .start = &first,
       .bound_count = 1},
      {.role = EP_OBS,
       .kind = EP_MULTI_BINARY,
       .dtype = EP_INT8,
       .name = "bits",
       .shape = &bits,
       .rank = 1},
      {.role = EP_OBS, .kind = EP_BOX, .dtype = EP_BOOL, .name = "flag"},
      {.role = EP_INFO, .kind = EP_BOX, .dtype = EP_INT64, .name = "t"},
      {.role = EP_INFO, .kind = EP_BOX, .dtype = EP_INT64, .name = "end"},
      {.role = EP_ACTION,
       .kind = EP_DISCRETE,
       .dtype = EP_INT64,
       .name = "push",
       .n = &pushes,
       .bound_count = 1},
      {.role = EP_ACTION,
       .kind = EP_BOX,
       .dtype = EP_FLOAT32,
       .name = "force",
       .low = &low,
       .high = &hundred,
       .bound_count = 1},
      /* The batched task ends here. */
      {.role = EP_OBS,
       .kind = EP_TEXT,
       .dtype = EP_UINT8,
       .name = "words",
       .shape = &text,
       .rank = 1},
      {.role = EP_OBS,
       .kind = EP_BOX,
       .dtype = EP_FLOAT32,
       .name = "events",
       .shape = &rows,
       .rank = 1,
       .low = &zero,
       .high = &hundred,
       .bound_count = 1,
       .flags = EP_FIELD_RAGGED},
      {.role = EP_GLOBAL,
       .kind = EP_BOX,
       .dtype = EP_UINT8,
       .name = "board",
       .shape = &board,
       .rank = 1},
  };
  (void)host;
  described = 1;
  spec->max_episode_steps = 100;
  if (IS("describe_thread")) start_thread();
  static volatile int at; /* for the flaw only: threads step on each other's place */
  const int count = batched() ? 8 : 11;
  at = 0;
  for (int i = 0; i < count; i++) {
    if (IS("describe_static")) {
      usleep(300);
      i = at < count ? at : count - 1;
      at = i + 1;
    }
    ep_field f = field[i];
    f.size = sizeof f;
    const ep_status s = spec->add(spec, &f);
    if (s != EP_OK && !IS("refusal_swallowed")) return s;
  }
  return EP_OK;
}

/* ---- running ------------------------------------------------------------ */

static ep_status open_file(const ep_host* host, const char* path) {
  if (!*path) return EP_OK;
  FILE* file = fopen(path, "r");
  if (!file && IS("odd_path_crash")) crash();
  if (!file && IS("odd_path_unexplained")) return EP_E_NOT_FOUND;
  if (!file) return ep_fail(host, EP_E_NOT_FOUND, "faulty: there is no such file");
  fclose(file);
  return EP_OK;
}

/* What no create() may do to its process. */
static void disturb(void) {
  static int times;
  if (times++ > 20) return;
  if (IS("own_thread") && times == 1) start_thread();
  if (IS("leaves_process")) start_process();
  if (IS("prints")) puts("faulty: hello"), fflush(stdout);
  if (IS("changes_directory")) sink = chdir("/");
  if (IS("changes_locale") && times == 1) change_locale();
  if (IS("changes_signal")) signal(SIGUSR1, SIG_IGN);
  if (IS("changes_float_mode")) fesetround(FE_UPWARD);
  if (IS("changes_environment")) setenv("ENVPOOL_FAULTY", "1", 1);
}

static ep_status EP_CALL create(const ep_host* host, const ep_create* info, void** env) {
  char path[4096];
  uint64_t length;
  if (IS("asset_crash") && host->asset(host, "board", path, sizeof path, &length) != EP_OK) crash();
  const ep_value* o = info->options;
  if (IS("needs_describe") && !described)
    return ep_fail(host, EP_E_FAILED, "faulty: describe() first");
  if (IS("max_fails") && o[SPEED].f >= 2) return ep_fail(host, EP_E_ARGUMENT, "faulty: too fast");
  if (IS("choice_fails") && strcmp(o[MODE].s, "b") == 0)
    return ep_fail(host, EP_E_ARGUMENT, "faulty: no mode b");
  if (IS("one_at_a_time") && alive > 0) return ep_fail(host, EP_E_FAILED, "faulty: one at a time");
  if (IS("newer_host_refused") && host->abi_minor > EP_ABI_MINOR)
    return ep_fail(host, EP_E_FAILED, "faulty: this host is too new");
  const ep_status s = open_file(host, o[FILE_].s);
  if (s != EP_OK) return s;
  disturb();
  Env* e = calloc(1, sizeof *e);
  if (!e) return ep_fail(host, EP_E_NOMEM, "faulty: no memory");
  e->host = host;
  e->id = info->env_id;
  e->speed = o[SPEED].f;
  e->start = o[START].f;
  e->g.cells = (int32_t)o[CELLS].i;
  e->thread = pthread_self();
  if (IS("keeps_options")) e->kept_options = o;
  if (IS("writes_options")) ((ep_value*)(uintptr_t)o)[SPEED].f = 1;
  if (IS("leaks_env")) leak(16384);
  if (IS("leaks_file")) sink = open("/dev/null", O_RDONLY);
  if (!IS("destroy_unused_crash") && !IS("crash_before_reset")) e->block = calloc(1, 64);
  alive++;
  *env = e;
  return EP_OK;
}

static uint64_t* generator(Env* e) { return IS("shared_generator") ? &shared.rng : &e->g.rng; }

static void seed(Env* e, const ep_reset* how) {
  static uint64_t count;
  Game* g = &e->g;
  uint64_t* rng = generator(e);
  if (!how->has_seed) {
    if (IS("every_episode_same")) *rng = g->seed;
    if (IS("unseeded_at_random")) *rng = (uint64_t)(uintptr_t)e + ++count;
    return;
  }
  if (IS("reseed_ignored") && g->begun) return;
  *rng = g->seed = how->seed;
  if (IS("ignores_seed")) *rng = 42;
  if (IS("seed_at_random")) *rng += ++count;
  if (IS("seed_of_process")) *rng ^= (uint64_t)getpid() << 20;
  if (IS("env_id_matters")) *rng += e->id;
}

static ep_status EP_CALL reset(void* env, const ep_reset* how) {
  Env* e = env;
  Game* g = &e->g;
  const double start = how->options[0].f;
  if (IS("no_second_reset") && g->begun)
    return ep_fail(e->host, EP_E_FAILED, "faulty: reset once only");
  if (IS("no_reset_in_episode") && g->running && g->t > 0)
    return ep_fail(e->host, EP_E_STATE, "faulty: the episode runs");
  if (IS("reset_option_fails") && start != e->start && start == 0.5)
    return ep_fail(e->host, EP_E_ARGUMENT, "faulty: a bad start");
  if (IS("descriptor_changes")) option[0].doc = "changed";
  if (!e->block) e->block = calloc(1, 64);
  seed(e, how);
  uint64_t* rng = generator(e);
  for (int i = 0; i < g->cells; i++) g->x[i] = start + ep_uniform(rng, -0.5, 0.5);
  g->t = g->turn = 0;
  g->end = 8 + (int64_t)(ep_rand(rng) % 8);
  g->running = g->begun = 1;
  return EP_OK;
}

static int64_t table[3] = {-1, 0, 1};

/* One step of a running episode; gives the reward. */
static double advance(Env* e, int64_t push) {
  Game* g = &e->g;
  uint64_t* rng = generator(e);
  double noise = ep_uniform(rng, -0.1, 0.1);
  if (IS("shared_scratch")) {
    scratch = noise;
    usleep(300);
    noise = scratch;
  }
  if (!IS("action_unchecked")) push = push < 0 ? 0 : push > 2 ? 2 : push;
  const double way = (double)table[push];
  for (int i = 0; i < g->cells; i++)
    g->x[i] = fmax(-1, fmin(1, g->x[i] + e->speed * (0.1 * way + noise)));
  g->turn = (int32_t)push;
  g->t++;
  g->running = g->t < g->end;
  return g->x[0];
}

static ep_status over(const Env* e) {
  if (IS("unexplained_end")) return EP_E_STATE;
  return ep_fail(e->host, EP_E_STATE, "faulty: step() without a running episode");
}

static ep_status EP_CALL step(void* env, const ep_input* in, const ep_result* out) {
  Env* e = env;
  Game* g = &e->g;
  if (IS("larger_refused") && in->size != sizeof *in)
    return ep_fail(e->host, EP_E_ARGUMENT, "faulty: a struct of another size");
  if (IS("reads_past_struct")) sink = (int)((const volatile char*)in)[in->size];
  if (IS("bound_to_thread") && !pthread_equal(e->thread, pthread_self()))
    return ep_fail(e->host, EP_E_FAILED, "faulty: another thread");
  if (IS("crash_before_reset") && !e->block) crash();
  while (IS("cancel_ignored") && e->host->cancelled(e->host)) usleep(1000);
  if (!g->running && !(IS("steps_after_end") && g->begun)) return over(e);
  const int64_t* action = in->action[0];
  if (e->kept_action) sink = (int)*(const volatile int64_t*)e->kept_action;
  if (IS("keeps_action")) e->kept_action = action;
  if (e->kept_view) sink = (int)*(const volatile float*)e->kept_view;
  if (e->kept_options) sink = (int)((const volatile ep_value*)e->kept_options)->f;
  if (IS("reads_past_action")) sink = (int)((const volatile int64_t*)action)[1];
  const int64_t push = *action;
  if (IS("writes_action")) *(int64_t*)(uintptr_t)action = 0;
  if (IS("leaks_step")) leak(8192);
  *out->reward = advance(e, push);
  *out->terminated = !g->running;
  *out->truncated = 0;
  if (IS("writes_past_results")) out->truncated[1] = 0;
  if (IS("flag_two") && !g->running) *out->terminated = 2;
  if (IS("reward_nan") && g->t == 3) *out->reward = NAN;
  return EP_OK;
}

static void put_state(Env* e, float* o) {
  Game* g = &e->g;
  if (IS("row_of_env_id")) o += e->id * (uint64_t)g->cells;
  const int32_t n = g->cells - IS("unwritten");
  for (int32_t i = 0; i < n; i++) o[i] = (float)g->x[i];
  if (IS("unwritten") && g->cells == 1) o[0] = 0;
  if (IS("writes_past")) o[g->cells] = 0;
  if (IS("writes_before")) o[-1] = 0;
  if (IS("beyond_bounds") && g->t == 3) o[0] = 1.5f;
  if (IS("nan") && g->t == 3) o[0] = NAN;
  if (IS("observe_counts")) o[0] = (float)(0.001 * (double)(e->looks % 900));
  if (IS("keeps_view")) e->kept_view = o;
}

static ep_status EP_CALL observe(void* env, const ep_view* out) {
  Env* e = env;
  Game* g = &e->g;
  e->looks++;
  if (IS("observe_advances")) ep_rand(generator(e));
  if (IS("observe_end_fails") && g->begun && !g->running)
    return ep_fail(e->host, EP_E_STATE, "faulty: the episode is over");
  void* const* o = out->obs;
  if (o && o[STATE]) {
    if (IS("needs_alignment") && (uintptr_t)o[STATE] % 16)
      return ep_fail(e->host, EP_E_ARGUMENT, "faulty: rows must be aligned to 16 bytes");
    put_state(e, o[STATE]);
  }
  if (o && (o[PICK] || IS("null_entry_crash")))
    *(int64_t*)o[PICK] = IS("beyond_n") && g->t == 3 ? 6 : 1 + g->t % 5;
  if (o && o[BITS])
    for (int i = 0; i < 3; i++) ((int8_t*)o[BITS])[i] = IS("bits_two") ? 2 : (g->t >> i) & 1;
  if (o && o[FLAG]) *(uint8_t*)o[FLAG] = IS("bool_two") ? 2 : g->t % 2 == 1;
  if (!batched() && o && o[WORDS]) {
    memcpy(o[WORDS], IS("text_not_utf8") ? "ab\xff" : "abc", 3);
    *out->obs_length[WORDS] = 3;
  }
  if (!batched() && o && o[EVENTS]) {
    const uint32_t n = (uint32_t)(g->t % 5);
    for (uint32_t i = 0; i < n; i++) ((float*)o[EVENTS])[i] = (float)i;
    *out->obs_length[EVENTS] = IS("length_too_long") && n == 4 ? 99 : n;
  }
  if ((out->info || IS("null_role_crash")) && out->info[0]) *(int64_t*)out->info[0] = g->t;
  if (out->info && out->info[1]) *(int64_t*)out->info[1] = g->end;
  if (out->global && out->global[0]) memset(out->global[0], (int)g->t, 3);
  return EP_OK;
}

static void EP_CALL destroy(void* env) {
  Env* e = env;
  if (IS("destroy_unused_crash") && !e->block) crash();
  if (IS("destroy_ended_crash") && e->g.begun && !e->g.running) crash();
  alive--;
  free(e->block);
  free(e);
}

/* ---- extensions --------------------------------------------------------- */

static ep_status batch_one(const ep_rows* rows, uint32_t i) {
  Env* e = rows->env[i];
  const uint32_t in = rows->in[i], out = IS("batch_ignores_out") ? i : rows->out[i];
  if (!e->g.running) return over(e);
  const char* action = rows->action[0].data;
  const int64_t push = *(const int64_t*)(action + in * rows->action[0].row_bytes);
  rows->reward[out] = advance(e, push) + (IS("batch_differs") && e->g.t == 5 ? 1 : 0);
  rows->terminated[out] = !e->g.running;
  rows->truncated[out] = 0;
  void *obs[4] = {NULL}, *info[2] = {NULL};
  const uint64_t packed[4] = {4 * (uint64_t)e->g.cells, 8, 3, 1};
  for (int k = 0; k < 4 && rows->obs; k++)
    if (rows->obs[k].data)
      obs[k] = (char*)rows->obs[k].data +
               out * (IS("batch_ignores_stride") ? packed[k] : rows->obs[k].row_bytes);
  for (int k = 0; k < 2 && rows->info; k++)
    if (rows->info[k].data || IS("batch_null_column"))
      info[k] = (char*)rows->info[k].data + out * rows->info[k].row_bytes;
  const ep_view view = {.size = sizeof view,
                        .agents = 1,
                        .obs = rows->obs ? obs : NULL,
                        .info = rows->info ? info : NULL};
  return observe(e, &view);
}

static ep_status EP_CALL step_many(const ep_rows* rows) {
  ep_status all = EP_OK;
  for (uint32_t i = 0; i < rows->count; i++) {
    const ep_status s = batch_one(rows, i);
    if (!IS("batch_status_unwritten")) rows->status[rows->out[i]] = s;
    if (s != EP_OK) all = s;
    if (s != EP_OK && IS("batch_stops")) break;
  }
  return all;
}

static ep_status EP_CALL measure(void* env, ep_image* image) {
  Env* e = env;
  if (!IS("render_no_size")) {
    if (image->width == 0) image->width = PICTURE;
    if (image->height == 0) image->height = PICTURE;
  }
  const int good = image->format == EP_RGB8 && image->camera == 0 && image->width == PICTURE &&
                   image->height == PICTURE;
  if (!good && !IS("render_accepts_all") && !IS("render_no_size"))
    return ep_fail(e->host, EP_E_ARGUMENT, "faulty: 16 x 16 RGB, one camera");
  return EP_OK;
}

static ep_status EP_CALL draw(void* env, const ep_image* image) {
  Env* e = env;
  if (IS("render_fails_at_end") && !e->g.running)
    return ep_fail(e->host, EP_E_STATE, "faulty: nothing to see");
  if (IS("render_advances")) ep_rand(generator(e));
  e->draws++;
  const uint64_t row = IS("render_ignores_stride") ? 3 * PICTURE : image->row_bytes;
  uint8_t* pixels = image->pixels;
  const uint32_t rows = PICTURE - (uint32_t)IS("render_unwritten");
  for (uint32_t y = 0; y < rows; y++)
    memset(pixels + y * row, (int)(IS("render_counts") ? e->draws : e->g.t) & 127, 3 * PICTURE);
  if (IS("render_writes_past")) pixels[PICTURE * image->row_bytes] = 0;
  return EP_OK;
}

typedef struct Saved {
  uint64_t magic;
  Game game;
  const void* place;
} Saved;
static const uint64_t MAGIC = UINT64_C(0x7661736c75617066);

static ep_status EP_CALL save(void* env, int32_t purpose, const ep_writer* writer) {
  Env* e = env;
  Saved s;
  (void)purpose;
  memset(&s, 0, sizeof s);
  s.magic = MAGIC;
  s.game = e->g;
  s.game.rng = *generator(e);
  if (IS("state_without_generator")) s.game.rng = 1;
  if (IS("state_pointer")) s.place = &MAGIC;
  const ep_status written = writer->write(writer, &s, sizeof s);
  if (IS("save_advances")) ep_rand(generator(e));
  return IS("writer_ignored") ? EP_OK : written;
}

static ep_status EP_CALL load(void* env, int32_t purpose, const void* data, uint64_t bytes) {
  Env* e = env;
  Saved s;
  (void)purpose;
  memset(&s, 0, sizeof s);
  memcpy(&s, data, bytes < sizeof s ? bytes : sizeof s);
  const int known = s.magic == MAGIC || IS("accepts_random");
  const int size = bytes == sizeof s || (IS("accepts_truncated") && bytes >= 8);
  const int sound = s.game.cells == e->g.cells && s.game.running <= 1 && s.game.end <= 15 &&
                    s.game.t >= 0 && s.game.t <= s.game.end &&
                    (IS("damage_unchecked") || (s.game.turn >= 0 && s.game.turn <= 2));
  const int placed = !IS("state_pointer") || s.place == &MAGIC;
  const int begun = !IS("load_needs_reset") || e->g.begun;
  if (IS("refused_load_changes") && bytes >= 16) e->g.x[0] = e->g.t = 0;
  if (!known || !size || !(sound || IS("accepts_random")) || !placed || !begun)
    return ep_fail(e->host, EP_E_ARGUMENT, "faulty: not a state of this task");
  const Game before = e->g;
  if (!e->block) e->block = calloc(1, 64);
  if (IS("damage_unchecked")) sink = (int)((volatile int64_t*)table)[s.game.turn];
  if (sound) e->g = s.game;
  *generator(e) = s.game.rng;
  if (IS("load_keeps_step") && before.t > s.game.t) e->g.t = before.t;
  if (IS("load_keeps_end")) e->g.running = before.running;
  return EP_OK;
}

static const char* EP_CALL nameless(uint32_t i) {
  (void)i;
  return NULL;
}

static ep_batch batch = {.size = sizeof(ep_batch), .step_many = step_many};
static ep_render render = {
    .size = sizeof(ep_render), .formats = 1u << EP_RGB8, .measure = measure, .draw = draw};
static ep_state state = {.size = sizeof(ep_state),
                         .purposes = 1u << EP_STATE_CLONE | 1u << EP_STATE_PERSIST,
                         .save = save,
                         .load = load};
static const ep_agents agents = {
    .size = sizeof(ep_agents), .group_count = 1, .name = nameless, .group = nameless};

static const void* EP_CALL extension(const char* id) {
  static ep_state second;
  static int calls;
  if (strcmp(id, EP_EXT_RENDER) == 0) return &render;
  if (strcmp(id, EP_EXT_STATE) == 0) {
    second = state;
    return IS("extension_moves") && calls++ % 2 ? &second : &state;
  }
  if (strcmp(id, EP_EXT_BATCH) == 0 && batched()) return &batch;
  if (strcmp(id, EP_EXT_AGENTS) == 0 && IS("agents_nameless")) return &agents;
  return IS("unknown_extension") && strstr(id, "nothing") ? &render : NULL;
}

/* ---- plugin ------------------------------------------------------------- */

static ep_task task = {.size = sizeof(ep_task),
                       .sharing = EP_FREE,
                       .id = "Faulty-v0",
                       .doc = "Keeps every promise but one.",
                       .options = options,
                       .option_count = OPTION_COUNT,
                       .describe = describe,
                       .create = create,
                       .reset = reset,
                       .step = step,
                       .observe = observe,
                       .destroy = destroy,
                       .extension = extension};
static const ep_task* const tasks[] = {&task};
static ep_plugin plugin = {.size = sizeof(ep_plugin),
                           .abi_major = EP_ABI_MAJOR,
                           .abi_minor = EP_ABI_MINOR,
                           .task_count = 1,
                           .tasks = tasks,
                           .name = "faulty",
                           .version = "1.0.0"};

/* The flaw: what stands between "faulty_" and ".so" in the name of this library's file. */
static void read_flaw(void) {
  Dl_info info;
  if (!dladdr(&plugin, &info)) return;
  const char* name = strstr(info.dli_fname, "faulty_");
  for (const char* next = name; next; next = strstr(next + 1, "faulty_")) name = next;
  if (name) sscanf(name, "faulty_%63[a-z0-9_]", flaw);
}

/* What no entry may do to its process. */
static void disturb_loading(void) {
  if (IS("entry_slow")) usleep(700000);
  if (IS("entry_thread")) start_thread();
  if (IS("entry_process")) start_process();
  if (IS("entry_file")) sink = open("/dev/null", O_RDONLY);
  if (IS("entry_prints")) puts("faulty: hello"), fflush(stdout);
  if (IS("entry_directory")) sink = chdir("/");
  if (IS("entry_locale")) change_locale();
  if (IS("entry_signal")) signal(SIGUSR1, SIG_IGN);
  if (IS("entry_float_mode")) fesetround(FE_UPWARD);
  if (IS("entry_environment")) setenv("ENVPOOL_FAULTY", "1", 1);
}

const ep_plugin* EP_CALL envpool_plugin_v1(const ep_host* host) {
  (void)host;
  read_flaw();
  build_options();
  disturb_loading();
  if (IS("reserved")) task.reserved = 1;
  if (IS("doc_not_utf8")) task.doc = "\xff";
  if (IS("extension_size")) state.size = 8;
  if (IS("state_no_purpose")) state.purposes = 0;
  if (IS("batch_not_free")) task.sharing = EP_THREAD_BOUND;
  if (IS("entry_moves")) return memcpy(malloc(sizeof plugin), &plugin, sizeof plugin);
  return &plugin;
}

/* ---- what the compiler has to know --------------------------------------- */

#ifdef FAULTY_exports_more
EP_EXPORT int faulty_helper(void);
int faulty_helper(void) { return 1; }
#endif

#ifdef FAULTY_undefined_symbol
int nobody_has_this(void);
int (*volatile faulty_use)(void) = nobody_has_this;
#endif

#ifdef FAULTY_crash_at_exit
__attribute__((destructor)) static void last_words(void) { abort(); }
#endif
