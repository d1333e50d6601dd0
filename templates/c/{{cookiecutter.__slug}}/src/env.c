{% set many = cookiecutter.players | int > 1 %}
{% set sharing = {"free": "EP_FREE", "one thread": "EP_THREAD_BOUND", "own process": "EP_ONE_PER_PROCESS"}[cookiecutter.sharing] %}
{% macro per_agent() %}
{% if many %}
        .flags = EP_FIELD_PER_AGENT,
{% endif %}
{% endmacro %}
/* env.c - what envpool has to know of the engine. To wrap your own, rewrite what speaks of the game
 * (game_...): the fields, the option, reset(), act(), look() and draw(). The contract of each call
 * stands in sdk/include/envpool/env.h. */
#include <envpool/env.h>
#include <envpool/ext/render.h>
#include <envpool/ext/state.h>
#include <stdlib.h>
#include <string.h>

#include "game.h"

enum { PICTURE = 256 }; /* pixels a side */

typedef struct Env {
  const ep_host* host;
  bool running; /* between a reset and the end of its episode */
  Game game;
} Env;

/* ---- spec --------------------------------------------------------------- */

static const ep_value SLOWEST = {.type = EP_T_FLOAT, .f = 0};
static const ep_value FASTEST = {.type = EP_T_FLOAT, .f = 0.1};
static const ep_option HUNTER_SPEED = {
    .size = sizeof(ep_option),
    .name = "hunter_speed",
    .doc = "how far the hunter goes in a step; a player goes 0.04",
    .def = {.type = EP_T_FLOAT, .f = 0.02},
    .min = &SLOWEST,
    .max = &FASTEST};
static const ep_option* const OPTIONS[] = {&HUNTER_SPEED};

{% if cookiecutter.observation == "vector" %}
static const int64_t SIX[] = {6};
static const float ZERO = 0, ONE = 1;
{% elif cookiecutter.observation == "image" %}
enum { SIGHT = 64 }; /* pixels a side */
static const int64_t IMAGE[] = {SIGHT, SIGHT, 3};
{% else %}
enum { SIGHT = 32 }; /* pixels a side */
static const int64_t PAIR[] = {2}, IMAGE[] = {SIGHT, SIGHT, 3};
static const float ZERO = 0, ONE = 1;
{% endif %}
{% if cookiecutter.action == "continuous" %}
static const int64_t WAYS[] = {2};
static const float LEAST = -1, MOST = 1;
{% elif cookiecutter.action == "multi-discrete" %}
static const int64_t WAYS[] = {2}, THREE[] = {3};
{% else %}
static const int64_t FIVE[] = {5};
static const char* const WAYS[] = {"STAY", "UP", "DOWN", "LEFT", "RIGHT"};
{% endif %}

static const ep_field FIELDS[] = {
{% if cookiecutter.observation == "vector" %}
    {
        .size = sizeof(ep_field),
        .role = EP_OBS,
        .kind = EP_BOX,
        .dtype = EP_FLOAT32,
        .name = "",
        .doc = "x, y of self, coin, hunter",
        .shape = SIX,
        .rank = 1,
        .low = &ZERO,
        .high = &ONE,
        .bound_count = 1,
{{ per_agent() }}    },
{% elif cookiecutter.observation == "image" %}
    {
        .size = sizeof(ep_field),
        .role = EP_OBS,
        .kind = EP_BOX,
        .dtype = EP_UINT8,
        .name = "",
        .shape = IMAGE,
        .rank = 3,
        .layout = EP_HWC,
{{ per_agent() }}    },
{% else %}
{% for name in ["self", "coin", "hunter"] %}
    {
        .size = sizeof(ep_field),
        .role = EP_OBS,
        .kind = EP_BOX,
        .dtype = EP_FLOAT32,
        .name = "{{ name }}",
        .doc = "x, y",
        .shape = PAIR,
        .rank = 1,
        .low = &ZERO,
        .high = &ONE,
        .bound_count = 1,
{{ per_agent() }}    },
{% endfor %}
    {
        .size = sizeof(ep_field),
        .role = EP_OBS,
        .kind = EP_BOX,
        .dtype = EP_UINT8,
        .name = "sight",
        .shape = IMAGE,
        .rank = 3,
        .layout = EP_HWC,
{{ per_agent() }}    },
{% endif %}
    {
        .size = sizeof(ep_field),
        .role = EP_ACTION,
        .name = "",
{% if cookiecutter.action == "continuous" %}
        .kind = EP_BOX,
        .dtype = EP_FLOAT32,
        .doc = "right, down",
        .shape = WAYS,
        .rank = 1,
        .low = &LEAST,
        .high = &MOST,
        .bound_count = 1,
{% elif cookiecutter.action == "multi-discrete" %}
        .kind = EP_DISCRETE,
        .dtype = EP_INT64,
        .doc = "to the right, down",
        .shape = WAYS,
        .rank = 1,
        .n = THREE,
        .bound_count = 1,
{% else %}
        .kind = EP_DISCRETE,
        .dtype = EP_INT64,
        .n = FIVE,
        .bound_count = 1,
        .labels = WAYS,
{% endif %}
{{ per_agent() }}    },
    {
        .size = sizeof(ep_field),
        .role = EP_INFO,
        .kind = EP_BOX,
        .dtype = EP_INT32,
        .name = "coins",
        .doc = "collected so far",
{{ per_agent() }}    },
};

static ep_status EP_CALL describe(const ep_host* host, const ep_create* info, ep_spec* spec) {
  (void)host, (void)info;
  spec->max_agents = PLAYERS;
  spec->max_episode_steps = 500;
  spec->fps = 30;
  for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++) {
    const ep_status status = spec->add(spec, &FIELDS[i]);
    if (status != EP_OK) return status;
  }
  return EP_OK;
}

/* ---- running ------------------------------------------------------------ */

static ep_status EP_CALL create(const ep_host* host, const ep_create* info, void** env) {
  Env* e = calloc(1, sizeof *e);
  if (!e) return ep_fail(host, EP_E_NOMEM, "no memory for a game");
  e->host = host;
  e->game.hunter_speed = (float)info->options[0].f;
  *env = e;
  return EP_OK;
}

static void EP_CALL destroy(void* env) { free(env); }

static ep_status EP_CALL reset(void* env, const ep_reset* how) {
  Env* e = env;
  if (how->has_seed) e->game.random = how->seed;
  game_start(&e->game);
  e->running = true;
  return EP_OK;
}

/* An action becomes a move of a player. */
static void act(Game* g, int player, const ep_input* in) {
{% if cookiecutter.action == "continuous" %}
  const float* way = (const float*)in->action[0] + 2 * player;
  game_move(g, player, way[0], way[1]);
{% elif cookiecutter.action == "multi-discrete" %}
  const int64_t* way = (const int64_t*)in->action[0] + 2 * player;
  game_move(g, player, (float)(way[0] - 1), (float)(way[1] - 1));
{% else %}
  const int64_t way = ((const int64_t*)in->action[0])[player];
  game_move(g, player, (float)((way == 4) - (way == 3)), (float)((way == 2) - (way == 1)));
{% endif %}
}

static ep_status EP_CALL step(void* env, const ep_input* in, const ep_result* out) {
  Env* e = env;
  if (!e->running) return ep_fail(e->host, EP_E_STATE, "step() without a running episode");
  for (int i = 0; i < PLAYERS; i++) {
    if (out->alive) out->alive[i] = e->game.player[i].in_play;
    act(&e->game, i, in);
  }
  game_advance(&e->game);
  for (int i = 0; i < PLAYERS; i++) {
    out->reward[i] = (double)e->game.player[i].points;
    out->terminated[i] = !e->game.player[i].in_play;
  }
  e->running = !game_over(&e->game);
  if (out->episode_over) *out->episode_over = !e->running;
  return EP_OK;
}

/* Writes what a player observes: those fields that are wanted. */
static void look(const Game* g, int player, const ep_view* out) {
  const Player* p = &g->player[player];
{% if cookiecutter.observation == "vector" %}
  if (out->obs && out->obs[0]) {
    const float places[] = {p->at.x, p->at.y, g->coin.x, g->coin.y, g->hunter.x, g->hunter.y};
    memcpy((float*)out->obs[0] + 6 * player, places, sizeof places);
  }
{% elif cookiecutter.observation == "image" %}
  if (out->obs && out->obs[0])
    game_draw(g, (uint8_t*)out->obs[0] + player * SIGHT * SIGHT * 3, SIGHT * 3, SIGHT, player);
{% else %}
  const Place places[] = {p->at, g->coin, g->hunter};
  for (int i = 0; i < 3; i++)
    if (out->obs && out->obs[i]) ((Place*)out->obs[i])[player] = places[i];
  if (out->obs && out->obs[3])
    game_draw(g, (uint8_t*)out->obs[3] + player * SIGHT * SIGHT * 3, SIGHT * 3, SIGHT, player);
{% endif %}
  if (out->info && out->info[0]) ((int32_t*)out->info[0])[player] = p->coins;
}

static ep_status EP_CALL observe(void* env, const ep_view* out) {
  const Env* e = env;
  for (int i = 0; i < PLAYERS; i++) look(&e->game, i, out);
  return EP_OK;
}

/* ---- extensions --------------------------------------------------------- */

static ep_status EP_CALL measure(void* env, ep_image* image) {
  if (image->width == 0) image->width = PICTURE;
  if (image->height == 0) image->height = PICTURE;
  if (image->format != EP_RGB8 || image->camera != 0 || image->width != PICTURE ||
      image->height != PICTURE)
    return ep_fail(((Env*)env)->host, EP_E_ARGUMENT, "one camera draws RGB at 256 x 256");
  return EP_OK;
}

static ep_status EP_CALL draw(void* env, const ep_image* image) {
  game_draw(&((Env*)env)->game, image->pixels, image->row_bytes, PICTURE, 0);
  return EP_OK;
}

/* A state: a version, which goes up when Game changes, and the game. For search and checkpoints on
 * the same machine: Game has padding, and no promise of layout. */
typedef struct State {
  uint32_t version;
  uint32_t running;
  Game game;
} State;

static ep_status EP_CALL save(void* env, int32_t purpose, const ep_writer* writer) {
  const Env* e = env;
  State s;
  (void)purpose;
  memset(&s, 0, sizeof s);
  s.version = 1;
  s.running = e->running;
  s.game = e->game;
  return writer->write(writer, &s, sizeof s);
}

static ep_status EP_CALL load(void* env, int32_t purpose, const void* data, uint64_t bytes) {
  Env* e = env;
  State s = {0};
  (void)purpose;
  if (bytes == sizeof s) memcpy(&s, data, sizeof s);
  if (s.version != 1 || s.running > 1)
    return ep_fail(e->host, EP_E_ARGUMENT, "not a state of this game, or one of another version");
  e->running = s.running != 0;
  e->game = s.game;
  return EP_OK;
}

static const ep_render RENDER = {
    .size = sizeof(ep_render), .formats = 1u << EP_RGB8, .measure = measure, .draw = draw};
static const ep_state STATE = {
    .size = sizeof(ep_state), .purposes = 1u << EP_STATE_CLONE, .save = save, .load = load};

static const void* EP_CALL extension(const char* id) {
  if (strcmp(id, EP_EXT_RENDER) == 0) return &RENDER;
  if (strcmp(id, EP_EXT_STATE) == 0) return &STATE;
  return NULL;
}

/* ---- plugin ------------------------------------------------------------- */

static const ep_task TASK = {.size = sizeof(ep_task),
                             .sharing = {{ sharing }},
                             .id = "{{ cookiecutter.env_id }}",
                             .doc = "{{ cookiecutter.description }}",
                             .options = OPTIONS,
                             .option_count = 1,
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
                                 .name = "{{ cookiecutter.package_name }}",
                                 .version = PLUGIN_VERSION};

const ep_plugin* EP_CALL envpool_plugin_v1(const ep_host* host) {
  (void)host;
  return &PLUGIN;
}
