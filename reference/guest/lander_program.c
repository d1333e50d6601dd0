/* lander_program.c - an engine with a main loop of its own, as a game has: it draws a frame, and in
 * each frame it asks whether the host wants something. Started by hand it just plays. */
#include "lander.h"

#include <envpool/guest.h>
#include <stdio.h>
#include <string.h>

typedef struct lander {
  double height, speed;
  int64_t fuel, full;
  uint64_t random;
  int over;
  int64_t frames;
} lander;

static ep_status begin(lander* game, const ep_reset* how) {
  if (how->has_seed) game->random = how->seed;
  game->height = ep_uniform(&game->random, 40.0, 60.0);
  game->speed = ep_uniform(&game->random, -2.0, 0.0);
  game->fuel = game->full;
  game->over = 0;
  return EP_OK;
}

static ep_status advance(lander* game, int64_t action, const ep_result* out) {
  const int thrusts = action == LANDER_THRUST && game->fuel > 0;
  if (game->over) return EP_E_STATE;
  game->fuel -= thrusts;
  game->speed += thrusts ? 0.2 : -0.1;
  game->height += game->speed;
  game->over = game->height <= 0;
  out->reward[0] = game->over ? (game->speed > -1.0 ? 100.0 : -100.0) : -0.1;
  out->terminated[0] = (uint8_t)game->over;
  return EP_OK;
}

static ep_status look(const lander* game, const ep_view* view) {
  if (view->obs && view->obs[0]) {
    const float obs[LANDER_OBS] = {(float)game->height, (float)game->speed, (float)game->fuel};
    memcpy(view->obs[0], obs, sizeof obs);
  }
  if (view->info && view->info[0]) memcpy(view->info[0], &game->frames, sizeof game->frames);
  return EP_OK;
}

static void play_alone(lander* game) {
  const ep_reset start = {.size = sizeof start, .has_seed = 1, .seed = 1};
  double reward = 0;
  uint8_t ended = 0;
  const ep_result out = {.size = sizeof out, .agents = 1, .reward = &reward, .terminated = &ended};
  begin(game, &start);
  while (!game->over) advance(game, game->speed < -0.8, &out);
  printf("landed with speed %.2f: reward %.0f\n", game->speed, reward);
}

int main(void) {
  lander game = {.full = 40};
  ep_guest guest;
  if (ep_guest_open(&guest) != EP_OK) {
    play_alone(&game);
    return 0;
  }
  for (;; ++game.frames) { /* here the engine would draw */
    ep_guest_call call = {.size = sizeof call};
    ep_status status = EP_OK;
    switch (ep_guest_next(&guest, &call, 10)) {
      case EP_GUEST_NOTHING:
        continue;
      case EP_GUEST_CREATE:
        game.full = call.create->options[LANDER_FUEL].i;
        break;
      case EP_GUEST_RESET:
        status = begin(&game, call.reset);
        break;
      case EP_GUEST_STEP:
        status = advance(&game, *(const int64_t*)call.input->action[0], call.result);
        break;
      case EP_GUEST_OBSERVE:
        status = look(&game, call.view);
        break;
      case EP_GUEST_END:
        return 0;
    }
    ep_guest_done(&guest, status, status == EP_OK ? NULL : "the episode is over");
  }
}
