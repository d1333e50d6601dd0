/* lander.h - what the plugin and the program of Lander-v0 both know: the option and the fields. */
#ifndef LANDER_H
#define LANDER_H

#include <stdint.h>

enum { LANDER_FUEL = 0 };                     /* options, in order */
enum { LANDER_COAST = 0, LANDER_THRUST = 1 }; /* actions */
enum { LANDER_OBS = 3 };                      /* height, speed, fuel: float[3] */

#endif
