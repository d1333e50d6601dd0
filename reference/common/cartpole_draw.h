/* cartpole_draw.h - the picture of a cart and its pole, 600 x 400 RGB; shared by the C and the C++
 * CartPole. */
#ifndef CARTPOLE_DRAW_H
#define CARTPOLE_DRAW_H

#include <math.h>
#include <stdint.h>

#define CARTPOLE_WIDTH 600
#define CARTPOLE_HEIGHT 400

/* `length` is half the pole's, in metres; 4.8 m of track are seen. */
static inline void cartpole_draw(double x, double theta, double length, uint8_t* pixels,
                                 uint64_t row_bytes) {
  const double scale = CARTPOLE_WIDTH / 4.8, cart_x = x * scale + CARTPOLE_WIDTH / 2.0,
               cart_y = 100;
  const double axle_y = cart_y + 7.5, s = sin(theta), c = cos(theta);
  for (int row = 0; row < CARTPOLE_HEIGHT; row++) {
    uint8_t* p = pixels + (uint64_t)row * row_bytes;
    const double y = CARTPOLE_HEIGHT - 1 - row; /* upwards */
    for (int col = 0; col < CARTPOLE_WIDTH; col++, p += 3) {
      const double dx = col - cart_x, dy = y - axle_y;
      const double across = dx * c - dy * s, along = dx * s + dy * c; /* in the pole's frame */
      uint32_t rgb = 0xffffff;
      if (row == CARTPOLE_HEIGHT - 1 - (int)cart_y) rgb = 0x000000;
      if (fabs(dx) <= 25 && fabs(y - cart_y) <= 15) rgb = 0x000000;
      if (fabs(across) <= 5 && along >= -5 && along <= 2 * length * scale - 5) rgb = 0xca9865;
      if (dx * dx + dy * dy <= 25) rgb = 0x8184cb;
      p[0] = (uint8_t)(rgb >> 16);
      p[1] = (uint8_t)(rgb >> 8);
      p[2] = (uint8_t)rgb;
    }
  }
}

#endif /* CARTPOLE_DRAW_H */
