/* game.h - Chase, the game that your engine replaces. It knows nothing of envpool.
 *
 * On a square field of side 1, players collect coins for a point each and flee from a hunter, who
 * takes a point from whom he touches and puts him out of the game. */
#ifndef GAME_H
#define GAME_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { PLAYERS = {{ cookiecutter.players }} };

typedef struct Place {
  float x, y;
} Place;

typedef struct Player {
  Place at;
  float points; /* of the last step */
  int32_t coins;
  uint8_t in_play; /* 0 or 1 */
} Player;

typedef struct Game {
  float hunter_speed; /* a step */
  uint64_t random;    /* state of the generator */
  Player player[PLAYERS];
  Place coin, hunter;
} Game;

/* Uniform in [0, 1): Knuth's linear congruential generator (MMIX), its upper 24 bits. */
static inline float game_uniform(Game* g) {
  g->random = g->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (float)(g->random >> 40) / 16777216.f;
}

static inline Place game_anywhere(Game* g) {
  const float x = game_uniform(g), y = game_uniform(g);
  return (Place){x, y};
}

static inline void game_start(Game* g) {
  for (int i = 0; i < PLAYERS; i++) {
    const float x = game_uniform(g) < 0.5f ? 0.f : 1.f, y = game_uniform(g);
    g->player[i] = (Player){.at = {x, y}, .in_play = 1};
  }
  g->coin = game_anywhere(g);
  g->hunter = (Place){0.5f, 0.5f};
}

/* Not a number counts as 0, so that no action can spoil the game. */
static inline float game_limited(float value, float most) {
  return value >= most ? most : value <= -most ? -most : value == value ? value : 0;
}

static inline float game_on_field(float value) { return value > 1 ? 1 : value > 0 ? value : 0; }

/* Moves a player by a direction whose parts are within [-1, 1]; in force at once. */
static inline void game_move(Game* g, int player, float dx, float dy) {
  Player* p = &g->player[player];
  if (!p->in_play) return;
  p->at.x = game_on_field(p->at.x + 0.04f * game_limited(dx, 1));
  p->at.y = game_on_field(p->at.y + 0.04f * game_limited(dy, 1));
}

static inline bool game_touching(Place a, Place b) {
  return fabsf(a.x - b.x) < 0.06f && fabsf(a.y - b.y) < 0.06f;
}

static inline float game_distance(const Game* g, const Player* p) {
  return fabsf(p->at.x - g->hunter.x) + fabsf(p->at.y - g->hunter.y);
}

/* Everyone has moved: the hunter follows, and it is seen who got what. */
static inline void game_advance(Game* g) {
  const Player* prey = NULL;
  for (int i = 0; i < PLAYERS; i++) {
    const Player* p = &g->player[i];
    if (p->in_play && (!prey || game_distance(g, p) < game_distance(g, prey))) prey = p;
  }
  if (!prey) return;
  g->hunter.x += game_limited(prey->at.x - g->hunter.x, g->hunter_speed);
  g->hunter.y += game_limited(prey->at.y - g->hunter.y, g->hunter_speed);
  for (int i = 0; i < PLAYERS; i++) {
    Player* p = &g->player[i];
    p->points = 0;
    if (!p->in_play) continue;
    if (game_touching(p->at, g->coin)) {
      p->points += 1;
      p->coins++;
      g->coin = game_anywhere(g);
    }
    if (game_touching(p->at, g->hunter)) {
      p->points -= 1;
      p->in_play = 0;
    }
  }
}

static inline bool game_over(const Game* g) {
  for (int i = 0; i < PLAYERS; i++)
    if (g->player[i].in_play) return false;
  return true;
}

static inline void game_square(uint8_t* pixels, uint64_t row_bytes, int side, Place at,
                               const uint8_t color[3]) {
  const int half = side * 3 / 100 > 1 ? side * 3 / 100 : 1;
  const int left = (int)(game_on_field(at.x) * (float)(side - 2 * half));
  const int top = (int)(game_on_field(at.y) * (float)(side - 2 * half));
  for (int y = top; y < top + 2 * half; y++)
    for (int x = left; x < left + 2 * half; x++)
      memcpy(pixels + (uint64_t)y * row_bytes + 3 * x, color, 3);
}

/* Draws side x side pixels of red, green and blue, as this player sees the field: he is green. */
static inline void game_draw(const Game* g, uint8_t* pixels, uint64_t row_bytes, int side,
                             int viewer) {
  static const uint8_t coin[] = {240, 200, 60}, other[] = {70, 130, 230}, self[] = {90, 220, 120},
                       hunter[] = {230, 70, 70};
  for (int y = 0; y < side; y++) memset(pixels + (uint64_t)y * row_bytes, 24, 3 * (size_t)side);
  game_square(pixels, row_bytes, side, g->coin, coin);
  for (int i = 0; i < PLAYERS; i++)
    if (g->player[i].in_play && i != viewer)
      game_square(pixels, row_bytes, side, g->player[i].at, other);
  if (g->player[viewer].in_play) game_square(pixels, row_bytes, side, g->player[viewer].at, self);
  game_square(pixels, row_bytes, side, g->hunter, hunter);
}

#endif /* GAME_H */
